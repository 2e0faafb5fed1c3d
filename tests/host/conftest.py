"""A host with one session, and the events that tests speak in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cassettes.host.events import CallEvent, InteractionEvent, Lineage, MessageEvent, RootTurnEvent, SessionEvent
from cassettes.host.events import TurnEvent as Turn
from cassettes.host.host import Host, NewSession, Submit
from cassettes.host.model import Commit

ROOT = "root-session"
TURN = "turn-1"
CHILD = "child-session"
LINEAGE = Lineage(
    root_session_id=ROOT,
    root_turn_id=TURN,
    parent_session_id=ROOT,
    parent_turn_id=TURN,
    parent_tool_call_id="call-spawn",
)


class CountingIds:
    """Ids that a reader can follow."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"


class Clock:
    """A clock that moves one millisecond with every look."""

    def __init__(self) -> None:
        self.at = 1000

    def __call__(self) -> int:
        self.at += 1
        return self.at


def open_host(database: Path, *, user_id: str = "user") -> Host:
    return Host.open(database, workspace_id="workspace", user_id=user_id, now=Clock(), ids=CountingIds())


def create_root(host: Host, *, cwd: str = "/rec/repo", **members: Any) -> None:
    host.create_session(NewSession(id=ROOT, agent_target_id="local:codex", provider="codex", cwd=cwd, **members))
    host.apply([SessionEvent(type="session.started", session_id=ROOT, provider_session_id="thread-1")], cause_ref="s")


def submit(host: Host, turn_id: str = TURN, text: str = "Do it", *, guidance: bool = False, name: str = "") -> Commit:
    return host.submit(
        Submit(
            session_id=ROOT,
            turn_id=turn_id,
            client_submit_id=name or f"submit-{turn_id}",
            content=[{"type": "text", "text": text}],
            guidance=guidance,
        )
    )


class Speaker:
    """Applies events of the root session's first Turn, each as one unit."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def unit(self, *events: Any) -> Commit:
        return self.host.apply(events, cause_ref="connection-1:1:1")

    def provider(self, type_: str, turn_id: str = TURN, **members: Any) -> Commit:
        return self.unit(RootTurnEvent(type=f"root_provider_turn.{type_}", session_id=ROOT, turn_id=turn_id, **members))

    def turn(self, type_: str, turn_id: str = TURN, session_id: str = ROOT, **members: Any) -> Commit:
        return self.unit(Turn(type=f"turn.{type_}", session_id=session_id, turn_id=turn_id, **members))

    def say(self, message_id: str, **members: Any) -> Commit:
        names = {"session_id": ROOT, "turn_id": TURN, "type": "message.appended"}
        return self.unit(MessageEvent(message_id=message_id, **{**names, **members}))

    def call(self, status: str, call_id: str = "call-1", **members: Any) -> Commit:
        kind = {"completed": "call.completed", "failed": "call.failed"}.get(status, "call.started")
        return self.unit(CallEvent(type=kind, session_id=ROOT, turn_id=TURN, call_id=call_id, status=status, **members))

    def ask(self, request_id: str = "request-1", **members: Any) -> Commit:
        names = {"session_id": ROOT, "turn_id": TURN, "type": "interaction.requested"}
        return self.unit(InteractionEvent(request_id=request_id, **{**names, **members}))

    def child(self, type_: str = "started", **members: Any) -> Commit:
        return self.unit(
            SessionEvent(type=f"session.{type_}", session_id=CHILD, turn_id="child-turn", lineage=LINEAGE, **members)
        )


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host with a root session and nothing going on."""
    opened = open_host(tmp_path / "state.sqlite3")
    create_root(opened)
    yield opened
    opened.close()


@pytest.fixture
def running(host: Host) -> Speaker:
    """The provider works on the first Turn of the root session."""
    submit(host)
    host.accept_submit(ROOT, "submit-turn-1")
    speaker = Speaker(host)
    speaker.provider("started", provider_turn_id="provider-turn-1")
    return speaker
