"""An engine with a clock that only tests move, and one session that is ready."""

from __future__ import annotations

from typing import Any

import pytest

from cassettes.engine.engine import ActivityEngine
from cassettes.engine.ports import Command, CommandResult

JsonObject = dict[str, Any]

SESSION = "session-1"


class Desk:
    """What a person and a host do at an engine."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.engine = ActivityEngine("workspace", lambda: self.now)
        self.engine.dispatch({"type": "session/upserted", "session": {"id": SESSION}})

    def do(self, kind: str, **members: Any) -> list[Command]:
        """Dispatch an intent about the session."""
        return self.engine.dispatch({"type": kind, "agentSessionId": SESSION, **members})

    def submit(self, submit_id: str, routing: str = "auto", **members: Any) -> list[Command]:
        """Submit the prompt `submit_id`."""
        content = [{"type": "text", "text": submit_id}]
        return self.do("submit/requested", clientSubmitId=submit_id, routing=routing, content=content, **members)

    def turn(self, turn_id: str, phase: str = "running", outcome: str = "") -> list[Command]:
        """The host tells of a Turn."""
        active = "" if phase == "settled" else turn_id
        commands = self.engine.dispatch(
            {"type": "session/upserted", "session": {"id": SESSION, "activeTurnId": active}}
        )
        return commands + self.do("turn/upserted", turn={"id": turn_id, "phase": phase, "outcome": outcome})

    def sent(self, command: Command, turn_id: str) -> list[Command]:
        """The host carried a prompt out; it became a Turn."""
        result = {"turn": {"id": turn_id}, "session": {"agentSessionId": SESSION}, "turnId": turn_id}
        return self.engine.settle(command.command_id, CommandResult(outcome="succeeded", result=result))

    def failed(self, command: Command, code: str = "refused") -> list[Command]:
        """The host could not carry a command out."""
        return self.engine.settle(command.command_id, CommandResult(outcome="failed", error_code=code))

    def wait(self, milliseconds: int) -> list[Command]:
        """Time goes by."""
        self.now += milliseconds
        return self.engine.expire()

    def queued(self) -> list[str]:
        """The prompts that wait, in order."""
        return [prompt["id"] for prompt in self.engine.queue_view(SESSION)["prompts"]]


@pytest.fixture
def desk() -> Desk:
    """A desk with one idle session."""
    return Desk()


def kinds(commands: list[Command]) -> list[str]:
    """The types of commands."""
    return [command.type for command in commands]
