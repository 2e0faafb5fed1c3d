"""How many provider units a second the host applies. Run: python tests/bench/host_apply.py"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cassettes.host.events import AgentEvent, CallEvent, MessageEvent
from cassettes.host.host import Host, NewSession, Submit
from cassettes.session.ids import SeededIds

UNITS = 100_000


def opened(folder: str) -> Host:
    """A host with one running Turn."""
    host = Host.open(
        Path(folder) / "state.sqlite3", workspace_id="w", user_id="u", now=lambda: 1, ids=SeededIds("bench")
    )
    host.create_session(NewSession(id="root", agent_target_id="local:codex", provider="codex", cwd="/p"))
    host.submit(
        Submit(session_id="root", turn_id="turn", client_submit_id="s", content=[{"type": "text", "text": "x"}])
    )
    return host


def text(long: bool) -> Iterator[list[AgentEvent]]:
    """Deltas of 24 characters: messages of 200 deltas, or all of it one message."""
    for number in range(UNITS):
        name = "message" if long else f"message-{number // 200}"
        yield [
            MessageEvent(
                type="message.appended",
                session_id="root",
                turn_id="turn",
                message_id=name,
                status="streaming",
                payload={"source": "runtime", "contentMode": "snapshot", "content": ""},
                delta="twenty four characters. ",
            )
        ]


def calls() -> Iterator[list[AgentEvent]]:
    """A call started, two live outputs, completed."""
    for number in range(UNITS // 4):
        names = {"session_id": "root", "turn_id": "turn", "call_id": f"call-{number}"}
        payload = {"name": "Shell", "callType": "command", "input": {"command": "make check", "cwd": "/p"}}
        yield [CallEvent(type="call.started", status="running", payload=payload, **names)]
        yield [
            CallEvent(type="call.started", status="running", output_delta="one line of output\n", live=True, **names)
        ]
        yield [
            CallEvent(type="call.started", status="running", output_delta="one line of output\n", live=True, **names)
        ]
        output = {"output": {"stdout": "one line of output\n" * 2, "exitCode": 0}}
        yield [CallEvent(type="call.completed", status="completed", payload=output, **names)]


def measure(title: str, units: Callable[[], Iterator[list[AgentEvent]]]) -> None:
    """Apply and flush all units, print the rate."""
    batches = list(units())
    with tempfile.TemporaryDirectory() as folder:
        host = opened(folder)
        start = time.perf_counter()
        for batch in batches:
            host.apply(batch, cause_ref="connection-1:1:1")
        host.flush()
        seconds = time.perf_counter() - start
        host.close()
    print(f"{title:28} {len(batches) / seconds:10,.0f} units/s")


def main() -> None:
    """Measure all kinds of units."""
    measure("text deltas", lambda: text(long=False))
    measure("one message of 2.4 MB", lambda: text(long=True))
    measure("tool calls with live output", calls)


if __name__ == "__main__":
    main()
