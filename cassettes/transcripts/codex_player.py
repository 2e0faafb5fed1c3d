"""The Codex app-server of a transcript (provider-adapters §4)."""

from __future__ import annotations

import json
from typing import Any

from cassettes.transcripts.codex_calls import changes_in_patch
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

_STATUS = {"completed": "completed", "interrupted": "interrupted", "failed": "failed"}
_STEP_STATUS = {"in_progress": "inProgress", "completed": "completed"}


class CodexConnection(TranscriptConnection):
    """Speaks JSON-RPC lines; root and child threads share the connection."""

    _thread = ""
    _started: dict[str, JsonObject]
    _compact_now = False

    def encode(self, message: JsonObject) -> bytes:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    # ------------------------------------------------------------------ answers

    def answer(self, message: JsonObject) -> None:
        method = message.get("method")
        name = message.get("id")
        if not isinstance(method, str) or name is None:
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if method in ("thread/start", "thread/resume"):
            self._thread = self.script.session_id
            thread: JsonObject = {"id": self._thread, "preview": "", "name": self.script.title or None, "turns": []}
            self._result(name, {"thread": thread, "model": self.script.model or None})
        elif method in ("turn/start", "thread/compact/start", "review/start"):
            self._start(name, method)
        elif method == "turn/steer":
            self._result(name, {"turnId": self.turn_id})
        elif method == "turn/interrupt":
            self._result(name, {})
            if self.turn is not None:
                self.turn.outcome = "interrupted"
                self.end()
        elif method in _ANSWERS:
            self._result(name, _ANSWERS[method])
        else:
            self.write({"id": name, "error": {"code": -32601, "message": f"{method} is not known to a transcript"}})

    def _start(self, name: object, method: str) -> None:
        number = self.script.turns[self._next] if self._next < len(self.script.turns) else None
        turn_id = (number.provider_turn_id if number else "") or f"{self._thread}-turn-{self._next + 1}"
        self._started = {}
        if method == "thread/compact/start":
            self._result(name, {})
        else:
            turn: JsonObject = {"id": turn_id, "items": [], "status": "inProgress", "error": None}
            self._result(name, {"turn": turn, **({"reviewThreadId": self._thread} if "review" in method else {})})
        self.begin(turn_id)

    def _result(self, name: object, result: JsonObject) -> None:
        self.write({"id": name, "result": result})

    # ------------------------------------------------------------------ turns

    def opening(self, turn: Turn) -> list[JsonObject]:
        started: JsonObject = {"id": self.turn_id, "items": [], "status": "inProgress", "error": None}
        return [_note("turn/started", threadId=self._thread, turn=started)]

    def closing(self, turn: Turn) -> list[JsonObject]:
        error = None
        if turn.outcome == "failed":
            message = self.portable.text(turn.error or "The turn failed.", 4000)
            error = {"message": message, "codexErrorInfo": None, "additionalDetails": None}
        done: JsonObject = {"id": self.turn_id, "items": [], "status": _STATUS[turn.outcome], "error": error}
        return [_note("turn/completed", threadId=self._thread, turn=done)]

    def _where(self, owner: str) -> JsonObject:
        return {"threadId": owner or self._thread, "turnId": f"{owner}-turn-1" if owner else self.turn_id}

    # ------------------------------------------------------------------ steps

    def text(self, step: Text) -> list[JsonObject]:
        text = self.portable.text(step.text)
        where = self._where(step.owner)
        if step.kind == "reasoning":
            item: JsonObject = {"type": "reasoning", "id": step.id, "summary": [text], "content": []}
            return [_note("item/completed", item=item, **where)]
        item = {"type": "agentMessage", "id": step.id, "text": text}
        return [
            _note("item/started", item={**item, "text": ""}, **where),
            _note("item/agentMessage/delta", itemId=step.id, delta=text, **where),
            _note("item/completed", item=item, **where),
        ]

    def call_started(self, step: CallStart, end: CallEnd | None) -> list[JsonObject]:
        where = self._where(step.owner)
        if step.tool == "plan":
            plan = [
                {"step": str(entry.get("step", "")), "status": _STEP_STATUS.get(str(entry.get("status")), "pending")}
                for entry in step.input.get("plan") or []
                if isinstance(entry, dict)
            ]
            if plan:
                explanation = step.input.get("explanation")
                return [_note("turn/plan/updated", explanation=explanation, plan=self.portable.value(plan), **where)]
        item = self._item(step, end)
        self._started[step.call_id] = item
        return [_note("item/started", item=item, **where)]

    def call_ended(self, step: CallEnd) -> list[JsonObject]:
        started = self._started.pop(step.call_id, None)
        if started is None:
            return []  # a plan, which has no end
        return [_note("item/completed", item=self._ended(started, step), **self._where(step.owner))]

    def _item(self, step: CallStart, end: CallEnd | None) -> JsonObject:
        given = self.portable.object(step.input)
        base: JsonObject = {"id": step.call_id, "status": "inProgress"}
        if step.tool == "command":
            where = given.get("cwd") if isinstance(given.get("cwd"), str) else "${REPLAY_CWD}"
            return {
                "type": "commandExecution",
                **base,
                "command": str(given.get("command") or step.name),
                "cwd": where,
                "commandActions": [],
                "aggregatedOutput": None,
                "exitCode": None,
            }
        if step.tool == "patch":
            changes = end.changes if end is not None and end.changes else self._planned(step)
            if changes:
                return {"type": "fileChange", **base, "changes": [self._change(change) for change in changes]}
        if step.tool == "mcp":
            server, _, tool = step.name.removeprefix("mcp__").partition("__")
            return {"type": "mcpToolCall", **base, "server": server, "tool": tool or server, "arguments": given}
        if step.tool == "search":
            query = given.get("query") or given.get("url") or ""
            return {"type": "webSearch", **base, "query": str(query), "action": given}
        return {"type": "dynamicToolCall", **base, "tool": step.name, "arguments": given}

    def _planned(self, step: CallStart) -> list[FileDiff]:
        patch = step.input.get("patch")
        return changes_in_patch(patch) if isinstance(patch, str) else []

    def _change(self, change: FileDiff) -> JsonObject:
        kind: JsonObject = {"type": change.change}
        if change.move_path:
            kind["move_path"] = self.portable.path(change.move_path)
        text = change.diff or change.content or ""
        return {"path": self.portable.path(change.path), "kind": kind, "diff": self.portable.text(text)}

    def _ended(self, item: JsonObject, step: CallEnd) -> JsonObject:
        output = self.portable.object(step.output)
        status = "failed" if step.failed else "completed"
        done: JsonObject = {**item, "status": status}
        text = str(output.get("stdout") or output.get("text") or "")
        error = self.portable.text(step.error, 4000)
        if item["type"] == "commandExecution":
            code = output.get("exitCode")
            done["aggregatedOutput"] = text or error
            done["exitCode"] = code if isinstance(code, int) else (1 if step.failed else 0)
        elif item["type"] == "fileChange":
            if step.changes:
                done["changes"] = [self._change(change) for change in step.changes]
        elif item["type"] == "mcpToolCall":
            done["result"] = None if step.failed else {"content": _content(text, output), "structuredContent": None}
            done["error"] = {"message": error or text} if step.failed else None
        elif item["type"] == "dynamicToolCall":
            done["success"] = not step.failed
            parts = [{"type": "inputText", "text": text or error}] if text or error else []
            for block in output.get("content") or []:
                if isinstance(block, dict) and block.get("type") == "image":
                    url = f"data:{block.get('mimeType')};base64,{block.get('data')}"
                    parts.append({"type": "inputImage", "imageUrl": url})
            done["contentItems"] = parts
        return done

    def notice(self, step: Notice) -> list[JsonObject]:
        message = self.portable.text(f"{step.title}: {step.detail}" if step.detail else step.title, 20_000)
        where = self._where(step.owner)
        if step.kind == "transport_retry":
            error = {"message": message, "codexErrorInfo": None, "additionalDetails": None}
            return [_note("error", error=error, willRetry=True, **where)]
        return [_note("warning", threadId=where["threadId"], message=message)]

    def compaction_began(self, step: Compaction) -> list[JsonObject]:
        item = {"type": "contextCompaction", "id": step.id}
        return [_note("item/started", item=item, **self._where(step.owner))]

    def compaction_ended(self, step: Compaction) -> list[JsonObject]:
        item = {"type": "contextCompaction", "id": step.id}
        return [_note("item/completed", item=item, **self._where(step.owner))]

    def child_started(self, step: ChildStart) -> list[JsonObject]:
        where = self._where(step.owner)
        item = {
            "type": "collabAgentToolCall",
            "id": f"{step.call_id}-{step.child}",
            "tool": "spawnAgent",
            "status": "inProgress",
            "senderThreadId": where["threadId"],
            "receiverThreadIds": [step.child],
            "prompt": self.portable.text(step.prompt),
            "agentsStates": {},
        }
        started: JsonObject = {"id": f"{step.child}-turn-1", "items": [], "status": "inProgress", "error": None}
        messages = [
            _note("item/started", item=item, **where),
            _note("item/completed", item={**item, "status": "completed"}, **where),
            _note("turn/started", threadId=step.child, turn=started),
        ]
        if step.title:
            messages.insert(2, _note("thread/name/updated", threadId=step.child, threadName=step.title))
        return messages

    def child_ended(self, step: ChildEnd) -> list[JsonObject]:
        error = {"message": step.summary or "The agent failed."} if step.outcome == "failed" else None
        done: JsonObject = {"id": f"{step.child}-turn-1", "items": [], "status": _STATUS[step.outcome], "error": error}
        return [_note("turn/completed", threadId=step.child, turn=done)]


_ANSWERS: dict[str, JsonObject] = {
    "initialize": {"userAgent": "transcript"},
    "account/read": {"account": None, "requiresOpenaiAuth": False},
    "model/list": {"data": []},
    "collaborationMode/list": {
        "data": [
            {"name": "Plan", "mode": "plan", "model": None, "reasoning_effort": "medium"},
            {"name": "Default", "mode": "default", "model": None, "reasoning_effort": None},
        ]
    },
    "account/rateLimits/read": {"rateLimits": {"primary": None, "secondary": None}},
    "skills/extraRoots/set": {},
    "thread/goal/get": {"goal": None},
    "thread/read": {"thread": {"name": None, "turns": []}},
}


def _note(method: str, **params: Any) -> JsonObject:
    return {"method": method, "params": params}


def _content(text: str, output: JsonObject) -> list[JsonObject]:
    blocks: list[JsonObject] = [{"type": "text", "text": text}] if text else []
    blocks += [block for block in output.get("content") or [] if isinstance(block, dict)]
    return blocks
