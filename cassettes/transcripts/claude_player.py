"""The Claude Code sidecar of a transcript (provider-adapters §5)."""

from __future__ import annotations

import json
from typing import Any

from cassettes.transcripts.player import TranscriptConnection
from cassettes.transcripts.script import (
    CallEnd,
    CallStart,
    ChildEnd,
    ChildStart,
    Compaction,
    FileDiff,
    Notice,
    Text,
    Turn,
)

JsonObject = dict[str, Any]

_VERSION = 8


class ClaudeConnection(TranscriptConnection):
    """Speaks NDJSON envelopes."""

    _calls: dict[str, CallStart]
    _provider_turn = ""
    _children: dict[str, ChildStart]

    def encode(self, message: JsonObject) -> bytes:
        return json.dumps({"version": _VERSION, **message}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    # ------------------------------------------------------------------ answers

    def answer(self, message: JsonObject) -> None:
        kind = message.get("type")
        name = message.get("id")
        payload = message.get("payload")
        payload = payload if isinstance(payload, dict) else {}
        session = self.script.session_id
        if kind == "start":
            given = {"providerSessionId": session}
            self.write({"type": "session_started", "payload": given}, self._ok(name, given))
        elif kind == "exec":
            self.write(self._ok(name, {}))
            self._calls, self._children = {}, {}
            self._provider_turn = f"{session}-turn-{self._next + 1}"
            self.begin(str(payload.get("turnId") or ""))
        elif kind == "cancel":
            running = self.turn is not None
            self.write(self._ok(name, {"canceled": running}))
            if self.turn is not None:
                self.turn.outcome = "interrupted"
                self.end()
        elif kind == "stop_task":
            self.write(self._ok(name, {"stopped": False}))
        elif kind in ("guide", "apply_settings", "close"):
            self.write(self._ok(name, {}))
        else:
            self.write({"id": name, "type": "error", "payload": {"error": f"{kind} is not known to a transcript"}})

    def _ok(self, name: object, payload: JsonObject) -> JsonObject:
        return {"id": name, "type": "ok", "payload": payload}

    def _event(self, kind: str, **payload: Any) -> JsonObject:
        return {"type": kind, "payload": {"turnId": self.turn_id, "providerTurnId": self._provider_turn, **payload}}

    # ------------------------------------------------------------------ turns

    def opening(self, turn: Turn) -> list[JsonObject]:
        return [self._event("provider_turn_identity_resolved")]

    def closing(self, turn: Turn) -> list[JsonObject]:
        if turn.outcome == "completed":
            return [self._event("turn_completed", stopReason="end_turn")]
        if turn.outcome == "interrupted":
            return [self._event("turn_canceled")]
        return [self._event("turn_failed", error=self.portable.text(turn.error or "The turn failed.", 4000))]

    # ------------------------------------------------------------------ steps

    def _owner(self, owner: str) -> JsonObject:
        child = self._children.get(owner)
        if child is None:
            return {}
        return {"metadata": {"parentToolUseId": child.call_id, "agentId": child.child}}

    def text(self, step: Text) -> list[JsonObject]:
        text = self.portable.text(step.text)
        given: JsonObject = {"messageId": step.id, "content": text, **self._owner(step.owner)}
        if step.owner:
            child = self._children[step.owner]
            given.update(parentToolUseId=child.call_id, agentId=child.child)
        if step.kind == "reasoning":
            return [self._event("thinking_completed", **given)]
        return [
            self._event("assistant_delta", **{**given, "snapshot": text}),
            self._event("assistant_completed", **given),
        ]

    def call_started(self, step: CallStart, end: CallEnd | None) -> list[JsonObject]:
        self._calls[step.call_id] = step
        return [self._event("tool_started", **self._call(step))]

    def call_ended(self, step: CallEnd) -> list[JsonObject]:
        start = self._calls.pop(step.call_id, None)
        given: JsonObject = self._call(start) if start is not None else {"toolCallId": step.call_id}
        given["output"] = self.portable.object(step.output)
        if step.changes:
            given["fileChanges"] = {"files": [self._change(change) for change in step.changes]}
        if step.failed:
            return [self._event("tool_failed", **given, error=self.portable.text(step.error or "failed", 20_000))]
        return [self._event("tool_completed", **given)]

    def _call(self, step: CallStart) -> JsonObject:
        return {
            "toolCallId": step.call_id,
            "name": step.name,
            "toolName": step.name,
            "callType": "subagent" if step.tool == "agent" else "tool",
            "input": self.portable.object(step.input),
            **self._owner(step.owner),
        }

    def _change(self, change: FileDiff) -> JsonObject:
        given: JsonObject = {"path": self.portable.path(change.path), "change": _CHANGES[change.change]}
        if change.diff:
            given["diff"] = self.portable.text(change.diff)
        if change.content is not None:
            given["content"] = self.portable.text(change.content)
        return given

    def notice(self, step: Notice) -> list[JsonObject]:
        title = self.portable.text(step.title, 4000)
        detail = self.portable.text(step.detail, 20_000)
        return [self._event("system_notice", noticeKind=step.kind, title=title, detail=detail)]

    def compaction_began(self, step: Compaction) -> list[JsonObject]:
        return [self._event("compact_started", reason=step.trigger or "auto")]

    def compaction_ended(self, step: Compaction) -> list[JsonObject]:
        return [self._event("compact_completed", content=self.portable.text(step.summary, 200_000))]

    def child_started(self, step: ChildStart) -> list[JsonObject]:
        self._children[step.child] = step
        return [
            self._event(
                "task_started",
                toolCallId=step.call_id,
                taskId=step.child,
                agentId=step.child,
                description=self.portable.text(step.title or step.prompt, 200),
                prompt=self.portable.text(step.prompt),
                **self._owner(step.owner),
            )
        ]

    def child_ended(self, step: ChildEnd) -> list[JsonObject]:
        child = self._children.get(step.child)
        status = {"completed": "completed", "failed": "failed", "interrupted": "stopped"}[step.outcome]
        call = child.call_id if child is not None else ""
        given = {"toolCallId": call, "taskId": step.child, "agentId": step.child, "status": status}
        return [self._event("task_completed", **given, summary=self.portable.text(step.summary))]


_CHANGES = {"add": "added", "update": "modified", "delete": "deleted"}
