"""`session/update`: what the agent says and does in a Turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassettes.host.events import SessionEvent
from cassettes.providers.acp import calls
from cassettes.providers.ports import Emit, Steps
from cassettes.providers.turns import OpenTurn

if TYPE_CHECKING:
    from cassettes.providers.acp.adapter import AcpAdapter

JsonObject = dict[str, Any]
_CHUNKS = {"agent_message_chunk": "text", "agent_thought_chunk": "reasoning"}
_PLAN_STATUS = {"in_progress": "in_progress", "completed": "completed"}


class Updates:
    """Turns updates into events. Unknown kinds give none."""

    def __init__(self, adapter: AcpAdapter) -> None:
        self._adapter = adapter
        self._calls: dict[str, JsonObject] = {}  # what is known of the calls of the Turn
        self._turn_id = ""
        self._segment = 0  # texts of the Turn so far
        self._chunk = ("", "")  # kind and message id of the open text
        self._plans = 0

    def receive(self, update: JsonObject) -> Steps:
        kind = str(update.get("sessionUpdate"))
        if kind in ("session_info_update", "current_mode_update"):
            return self._session(kind, update)
        turn = self._adapter.live_turn
        if turn is None:
            return []
        self._begin(turn)
        if kind in _CHUNKS:
            events = self._chunk_events(turn, kind, update)
        elif kind in ("tool_call", "tool_call_update"):
            events = self._call_events(turn, update)
        elif kind == "plan":
            events = self._plan_events(turn, update)
        else:
            return []
        return self._adapter.confirm() + [Emit(event) for event in events]

    def _begin(self, turn: OpenTurn) -> None:
        if turn.turn_id != self._turn_id:
            self._turn_id, self._segment, self._chunk, self._plans = turn.turn_id, 0, ("", ""), 0
            self._calls = {}

    def _session(self, kind: str, update: JsonObject) -> Steps:
        session = self._adapter.session_id
        title, mode = update.get("title"), update.get("currentModeId")
        if kind == "session_info_update" and isinstance(title, str) and title.strip():
            return [Emit(SessionEvent(type="session.updated", session_id=session, title=title.strip()))]
        if kind == "current_mode_update" and isinstance(mode, str) and mode:
            settings = {"permissionModeId": mode}
            return [Emit(SessionEvent(type="session.updated", session_id=session, settings=settings))]
        return []

    def _chunk_events(self, turn: OpenTurn, kind: str, update: JsonObject) -> list[Any]:
        """Chunks join until another kind or another message id comes."""
        content = update.get("content")
        text = content.get("text") if isinstance(content, dict) else None
        if not isinstance(text, str) or not text:
            return []
        chunk = (kind, str(update.get("messageId") or ""))
        events = []
        if chunk != self._chunk:
            events += turn.close_texts()
            self._segment += 1
            self._chunk = chunk
        name = f"{kind}:{turn.turn_id}:{self._segment}"
        return [*events, *turn.grow(name, _CHUNKS[kind], name, text)]

    def _call_events(self, turn: OpenTurn, update: JsonObject) -> list[Any]:
        name = update.get("toolCallId")
        if not isinstance(name, str) or not name:
            return []
        self._chunk = ("", "")
        fresh = name not in self._calls
        was_over = not fresh and calls.is_over(self._calls[name])
        call = self._calls[name] = calls.merged(self._calls.get(name, {}), update)
        if was_over:
            return []
        events = turn.start_call(name, calls.payload(call, done=False)) if fresh else []
        if calls.is_over(call):
            changes = calls.file_changes(call)
            return [*events, *turn.end_call(name, calls.payload(call, done=True), str(call["status"]), changes)]
        return events if fresh else turn.progress(name, calls.payload(call, done=False))

    def _plan_events(self, turn: OpenTurn, update: JsonObject) -> list[Any]:
        """The whole plan, each time anew."""
        entries = update.get("entries")
        todos = [
            {"content": str(one.get("content") or ""), "status": _PLAN_STATUS.get(str(one.get("status")), "pending")}
            for one in (entries if isinstance(entries, list) else [])
            if isinstance(one, dict)
        ]
        self._chunk = ("", "")
        self._plans += 1
        name = f"plan:{turn.turn_id}:{self._plans}"
        body = {"name": "update_todo", "toolName": "update_todo", "callType": "tool", "title": "Plan", "kind": "other"}
        given: JsonObject = {**body, "input": {"todos": todos}}
        return [*turn.start_call(name, given), *turn.end_call(name, given, "completed")]
