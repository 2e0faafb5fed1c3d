"""What a viewer sees of a replay: commits turned into events, coalesced until somebody takes them.

A row that changed ten times between two takes is told once, with its last value; text that grew is told as the text
that was added. So the cost of a batch follows what changed on the screen, not how many frames it took.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from cassettes.engine.engine import Command, CommandResult
from cassettes.host.model import Commit, GoalRow, InteractionRow, MessageRow, Mutation, SessionRow, TurnRow
from cassettes.session.ports import Unit, UnitEvent

JsonObject = dict[str, Any]
_Key = tuple[str, ...]
Row = SessionRow | TurnRow | MessageRow | InteractionRow | GoalRow


class Feed:
    """Collects changed rows. `take` returns the events since the last take, in the order of first change."""

    def __init__(self) -> None:
        self._dirty: dict[_Key, Row] = {}
        self._grown: dict[_Key, list[str]] = {}
        self._told: set[_Key] = set()  # messages whose whole row the viewer has
        self._queued: set[str] = set()
        self.commits = 0  # that changed something in the transcript

    def take(self) -> list[JsonObject]:
        """Events since the last call."""
        events = [self._event(key, row) for key, row in self._dirty.items()]
        self._dirty.clear()
        self._grown.clear()
        return events

    def take_queues(self) -> set[str]:
        """Sessions whose prompt queue may have changed."""
        queued, self._queued = self._queued, set()
        return queued

    def on_intent(self, intent: JsonObject) -> None:
        session = intent.get("agentSessionId")
        if isinstance(session, str) and str(intent.get("type", "")).startswith(("queue/", "submit/", "activation/")):
            self._queued.add(session)

    def on_command(self, command: Command) -> None:
        if command.type == "queue/sendPrompt":
            self._queued.add(command.agent_session_id)

    def on_command_result(self, command: Command, result: CommandResult) -> None:
        self.on_command(command)

    def on_unit(self, unit: Unit, events: Sequence[UnitEvent], commit: Commit) -> None:
        """Everything visible comes with the commits."""

    def on_commit(self, commit: Commit) -> None:
        self.commits += any(not isinstance(mutation.value, SessionRow) for mutation in commit.mutations)
        for mutation in commit.mutations:
            self._note(mutation)

    def _note(self, mutation: Mutation) -> None:
        row = mutation.value
        if isinstance(row, MessageRow):
            key: _Key = ("message", row.session_id, row.id)
            if mutation.appended and key in self._told and (key not in self._dirty or key in self._grown):
                self._grown.setdefault(key, []).append(mutation.appended)
            else:
                self._grown.pop(key, None)
        elif isinstance(row, SessionRow):
            key = ("session", row.id)
        elif isinstance(row, TurnRow):
            key = ("turn", row.session_id, row.id)
        elif isinstance(row, InteractionRow):
            key = ("interaction", row.session_id, row.turn_id, row.request_id)
        else:
            key = ("goal", row.session_id)
        self._dirty[key] = row

    def _event(self, key: _Key, row: Row) -> JsonObject:
        grown = self._grown.get(key)
        if grown is not None and isinstance(row, MessageRow):
            target = "output" if row.kind == "tool_call" else "text"
            return {
                "type": "append",
                "sessionId": row.session_id,
                "messageId": row.id,
                "text": "".join(grown),
                "target": target,
                "version": row.version,
            }
        if key[0] == "message":
            self._told.add(key)
        return {"type": key[0], "row": msgspec.to_builtins(row)}
