"""The agent of an ACP log: it answers the adapter and sends the recorded updates."""

from __future__ import annotations

import json
from typing import Any

from cassettes.transcripts.player import TranscriptConnection
from cassettes.transcripts.script import CallEnd, CallStart, ChildEnd, ChildStart, Compaction, Notice, Text, Turn

JsonObject = dict[str, Any]

_STOP = {"completed": "end_turn", "interrupted": "cancelled"}


class AcpConnection(TranscriptConnection):
    """Speaks JSON-RPC 2.0 lines."""

    _prompt: object = None  # id of the prompt that is being worked on

    def encode(self, message: JsonObject) -> bytes:
        return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def answer(self, message: JsonObject) -> None:
        method, name = message.get("method"), message.get("id")
        if method == "initialize":
            self._result(name, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "authMethods": []})
        elif method == "session/new":
            self._result(name, {"sessionId": self.script.session_id})
        elif method == "session/load":
            self._result(name, {})
        elif method == "session/prompt":
            self._prompt = name
            self.begin(f"{self.script.session_id}-turn-{self._next + 1}")
        elif method == "session/cancel":
            if self.turn is not None:
                self.turn.outcome = "interrupted"
                self.end()
        elif name is not None:
            self.write({"id": name, "error": {"code": -32601, "message": f"{method} is not known to a transcript"}})

    def _result(self, name: object, result: JsonObject) -> None:
        self.write({"id": name, "result": result})

    def _update(self, what: str, **members: Any) -> JsonObject:
        update = {"sessionUpdate": what, **members}
        return {"method": "session/update", "params": {"sessionId": self.script.session_id, "update": update}}

    # ------------------------------------------------------------------ turns

    def opening(self, turn: Turn) -> list[JsonObject]:
        return []  # the first update says that the work has begun

    def closing(self, turn: Turn) -> list[JsonObject]:
        if turn.outcome == "failed":
            message = self.portable.text(turn.error or "The turn failed.", 4000)
            return [{"id": self._prompt, "error": {"code": -32603, "message": message}}]
        return [{"id": self._prompt, "result": {"stopReason": _STOP[turn.outcome]}}]

    # ------------------------------------------------------------------ steps

    def text(self, step: Text) -> list[JsonObject]:
        kind = "agent_thought_chunk" if step.kind == "reasoning" else "agent_message_chunk"
        return [self._update(kind, messageId=step.id, content={"type": "text", "text": self.portable.text(step.text)})]

    def call_started(self, step: CallStart, end: CallEnd | None) -> list[JsonObject]:
        given = self.portable.object(step.input)
        if step.tool == "plan":
            return [self._update("plan", entries=given.get("entries") or [])]
        members = {
            "title": self.portable.text(step.name, 4000),
            "kind": given.get("kind") or "other",
            "rawInput": given.get("rawInput") or {},
            "locations": given.get("locations") or [],
        }
        return [self._update("tool_call", toolCallId=step.call_id, status="in_progress", **members)]

    def call_ended(self, step: CallEnd) -> list[JsonObject]:
        status = "failed" if step.failed else "completed"
        output = self.portable.object(step.output)
        members = {name: output[name] for name in ("content", "rawOutput") if output.get(name)}
        return [self._update("tool_call_update", toolCallId=step.call_id, status=status, **members)]

    def notice(self, step: Notice) -> list[JsonObject]:
        return []  # the protocol has none, and the reader makes none

    def compaction_began(self, step: Compaction) -> list[JsonObject]:
        return []

    def compaction_ended(self, step: Compaction) -> list[JsonObject]:
        return []

    def child_started(self, step: ChildStart) -> list[JsonObject]:
        return []

    def child_ended(self, step: ChildEnd) -> list[JsonObject]:
        return []
