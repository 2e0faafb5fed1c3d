"""Small transcripts for tests, written line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]
START = "2026-05-01T10:00:{:06.3f}Z"


class ClaudeFile:
    """Builds a Claude Code session file; each record hangs on the one before unless told otherwise."""

    def __init__(self, session: str = "session-1", cwd: str = "/home/dev/project") -> None:
        self.lines: list[bytes] = []
        self.last: str | None = None
        self._session = session
        self._cwd = cwd
        self._count = 0

    def raw(self, line: bytes) -> None:
        """Any bytes, as one line."""
        self.lines.append(line)

    def add(self, kind: str, *, at: float | None = None, parent: Any = "last", uuid: str = "", **members: Any) -> str:
        """One record; returns its uuid."""
        self._count += 1
        uuid = uuid or f"u{self._count}"
        record: JsonObject = {
            "parentUuid": self.last if parent == "last" else parent,
            "isSidechain": False,
            "sessionId": self._session,
            "cwd": self._cwd,
            "version": "2.1.50",
            "type": kind,
            "uuid": uuid,
            "timestamp": START.format(self._count if at is None else at),
            **members,
        }
        self.lines.append(json.dumps(record).encode())
        self.last = uuid
        return uuid

    def user(self, content: Any, **members: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **members)

    def reply(self, *blocks: JsonObject | str, id: str = "", model: str = "claude-x", **members: Any) -> str:  # noqa: A002
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        usage = members.pop("usage", {"input_tokens": 10, "output_tokens": 1})
        name = id or f"msg_{self._count + 1}"
        message = {"id": name, "role": "assistant", "model": model, "content": content, "usage": usage}
        return self.add("assistant", message=message, **members)

    def call(self, call_id: str, name: str = "Bash", given: JsonObject | None = None, **members: Any) -> str:
        return self.reply({"type": "tool_use", "id": call_id, "name": name, "input": given or {}}, **members)

    def result(self, call_id: str, content: Any = "done", *, error: bool | None = None, **members: Any) -> str:
        block: JsonObject = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        if error is not None:
            block["is_error"] = error
        return self.user([block], **members)

    def write(self, path: Path, *, end: bytes = b"\n", between: bytes = b"\n") -> Path:
        path.write_bytes(between.join(self.lines) + end)
        return path


class RolloutFile:
    """Builds a Codex rollout."""

    def __init__(self, session: str = "thread-1", **meta: Any) -> None:
        self.lines: list[bytes] = []
        self.seconds = 0.0
        self.add("session_meta", {"id": session, "cwd": "/home/dev/project", "cli_version": "0.100.0", **meta})

    def add(self, kind: str, payload: JsonObject, *, at: float | None = None) -> None:
        self.seconds = self.seconds + 1 if at is None else at
        record = {"timestamp": START.format(self.seconds), "type": kind, "payload": payload}
        self.lines.append(json.dumps(record).encode())

    def item(self, kind: str, **members: Any) -> None:
        self.add("response_item", {"type": kind, **members})

    def event(self, kind: str, **members: Any) -> None:
        self.add("event_msg", {"type": kind, **members})

    def said(self, role: str, text: str, **members: Any) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self.item("message", role=role, content=[{"type": kind, "text": text}], **members)

    def write(self, path: Path) -> Path:
        path.write_bytes(b"\n".join(self.lines) + b"\n")
        return path
