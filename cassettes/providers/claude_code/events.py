"""Events of the sidecar (provider-adapters §5.3, §5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassettes.host.events import AgentEvent, RootTurnEvent, SessionEvent
from cassettes.providers.claude_code import tools
from cassettes.providers.ports import Emit, Fail, Steps
from cassettes.providers.turns import OpenTurn

if TYPE_CHECKING:
    from cassettes.providers.claude_code.adapter import ClaudeAdapter

JsonObject = dict[str, Any]


class Events:
    """Turns sidecar events into steps. Unknown ones give none."""

    def __init__(self, adapter: ClaudeAdapter) -> None:
        self._adapter = adapter
        self._last_activity = ""
        self._handlers = {
            "error": self._broken,
            "session_started": self._session_started,
            "session_state": self._session_state,
            "sdk_lifecycle_observed": self._lifecycle,
            "provider_turn_identity_resolved": self._identity,
            "turn_started": self._turn_started,
            "provider_turn_checkpoint": self._turn_checkpoint,
            "assistant_delta": lambda body: self._delta(body, "text"),
            "thinking_delta": lambda body: self._delta(body, "reasoning"),
            "assistant_completed": lambda body: self._text(body, "text", "completed"),
            "assistant_failed": lambda body: self._text(body, "text", "failed"),
            "thinking_completed": lambda body: self._text(body, "reasoning", "completed"),
            "tool_started": self._tool_started,
            "tool_updated": self._tool_updated,
            "tool_completed": lambda body: self._tool_ended(body, "completed"),
            "tool_failed": lambda body: self._tool_ended(body, "failed"),
            "task_started": self._task_started,
            "task_progress": self._task_progress,
            "task_completed": self._task_completed,
            "task_result_updated": self._task_result,
            "approval_requested": self._asked,
            "user_input_requested": self._asked,
            "approval_resolved": self._resolved,
            "user_input_resolved": self._resolved,
            "plan_updated": self._plan_updated,
            "compact_started": lambda body: self._compact(body, "running"),
            "compact_completed": lambda body: self._compact(body, "completed"),
            "compact_failed": lambda body: self._compact(body, "failed"),
            "usage_updated": self._usage,
            "speed_updated": self._usage,
            "session_title_updated": self._title,
            "goal_observed": self._goal,
            "background_tasks_quiesced": self._quiesced,
            "system_notice": self._notice,
            "turn_completed": self._turn_completed,
            "turn_canceled": self._turn_canceled,
            "turn_failed": self._turn_failed,
        }

    def receive(self, kind: str, body: JsonObject) -> Steps:
        handler = self._handlers.get(kind)
        if handler is None or self._is_foreign(kind, body):
            return []
        return handler(body)

    def _is_foreign(self, kind: str, body: JsonObject) -> bool:
        """An event of another Turn than the one that is waited for is ignored."""
        turn, told = self._adapter.turn, body.get("turnId")
        if not isinstance(told, str) or not told or turn is None or kind.startswith("task_"):
            return False
        return told != turn.turn_id and not told.startswith("synthetic-")

    # ------------------------------------------------------------------ session

    def _broken(self, body: JsonObject) -> Steps:
        message = str(body.get("error") or "the provider failed")
        error = {"message": message}
        if self._adapter.live_turn is not None:
            return self._adapter.end_turn("failed", error)
        return [Emit(SessionEvent(type="session.failed", session_id=self._adapter.session_id, error=error))]

    def _session_started(self, body: JsonObject) -> Steps:
        name = body.get("providerSessionId")
        return self._adapter.opened(name) if isinstance(name, str) and name else []

    def _session_state(self, body: JsonObject) -> Steps:
        return [Emit(SessionEvent(type="session.updated", session_id=self._adapter.session_id))]

    def _lifecycle(self, body: JsonObject) -> Steps:
        state = "running" if str(body.get("state")) in ("running", "busy", "working") else "idle"
        if state == self._last_activity:
            return []
        self._last_activity = state
        return [Emit(SessionEvent(type="session.updated", session_id=self._adapter.session_id, activity=state))]

    def _title(self, body: JsonObject) -> Steps:
        title = str(body.get("title") or "").strip()
        if not title:
            return []
        return [Emit(SessionEvent(type="session.updated", session_id=self._adapter.session_id, title=title))]

    def _usage(self, body: JsonObject) -> Steps:
        return [Emit(SessionEvent(type="session.updated", session_id=self._adapter.session_id, usage=body))]

    def _goal(self, body: JsonObject) -> Steps:
        goal = body.get("goal")
        told = goal if isinstance(goal, dict) else {}
        return [Emit(SessionEvent(type="session.updated", session_id=self._adapter.session_id, goal=told))]

    # ------------------------------------------------------------------ Turns

    def _identity(self, body: JsonObject) -> Steps:
        turn, name = self._adapter.live_turn, body.get("providerTurnId")
        if turn is None or not isinstance(name, str) or not name:
            return []
        if turn.provider_turn_id and turn.provider_turn_id != name:
            return [Fail("provider_turn_rebound", "the provider named a second Turn for one prompt")]
        return self._adapter.bind(turn, name)

    def _turn_started(self, body: JsonObject) -> Steps:
        turn, name = self._adapter.live_turn, body.get("providerTurnId") or body.get("turnId")
        if turn is None or not isinstance(name, str) or turn.provider_turn_id:
            return []
        return self._adapter.bind(turn, name)

    def _turn_checkpoint(self, body: JsonObject) -> Steps:
        turn, name = self._adapter.live_turn, body.get("providerCheckpointMessageId")
        if turn is None or not isinstance(name, str) or not name:
            return []
        checkpoint = {
            "kind": "claude-session",
            "providerSessionId": self._adapter.provider_session_id,
            "providerCheckpointMessageId": name,
        }
        event = RootTurnEvent(
            type="root_provider_turn.checkpoint",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            resume_checkpoint=checkpoint,
        )
        return [Emit(event)]

    def _turn_completed(self, body: JsonObject) -> Steps:
        turn = self._adapter.live_turn
        if turn is None:
            return []
        steps = self._late_identity(turn, body)
        if not turn.provider_turn_id:
            return [Fail("provider_turn_unbound", "a Turn was completed that the provider never named")]
        return steps + self.finish_children("completed") + self._adapter.end_turn("completed")

    def _turn_canceled(self, body: JsonObject) -> Steps:
        turn = self._adapter.live_turn
        if turn is None:
            return []
        steps = self._late_identity(turn, body) + self._adapter.interactions.supersede_all()
        return steps + self.finish_children("interrupted") + self._adapter.end_turn("canceled")

    def _turn_failed(self, body: JsonObject) -> Steps:
        turn = self._adapter.live_turn
        if turn is None:
            return []
        told = body.get("error")
        error = told if isinstance(told, dict) else {"message": str(told or "The turn failed.")}
        steps = self._late_identity(turn, body) + self._adapter.interactions.supersede_all()
        return steps + self.finish_children("failed") + self._adapter.end_turn("failed", error)

    def finish_children(self, outcome: str) -> Steps:
        """Children that run in the foreground cannot outlive the Turn."""
        return self._adapter.children.end_foreground("completed" if outcome == "completed" else "interrupted")

    def _late_identity(self, turn: OpenTurn, body: JsonObject) -> Steps:
        """A terminal event may be the first that names the provider's Turn."""
        if turn.provider_turn_id:
            return []
        name, told = body.get("providerTurnId"), body.get("turnId")
        if not (isinstance(name, str) and name) and isinstance(told, str) and told.startswith("synthetic-"):
            name = told
        return self._adapter.bind(turn, name) if isinstance(name, str) and name else []

    # ------------------------------------------------------------------ text and notices

    def _delta(self, body: JsonObject, kind: str) -> Steps:
        turn = self._owner(body)
        if turn is None:
            return []
        message_id = self._message_id(turn, body, kind)
        snapshot = body.get("snapshot")
        if isinstance(snapshot, str) and snapshot:
            return self._emit(turn.replace(message_id, kind, message_id, snapshot))
        return self._emit(turn.grow(message_id, kind, message_id, str(body.get("content") or "")))

    def _text(self, body: JsonObject, kind: str, status: str) -> Steps:
        turn = self._owner(body)
        if turn is None:
            return []
        message_id = self._message_id(turn, body, kind)
        return self._emit(turn.finish(message_id, kind, message_id, str(body.get("content") or ""), status))

    def _notice(self, body: JsonObject) -> Steps:
        turn = self._owner(body)
        if turn is None:
            return []
        kind, title = str(body.get("noticeKind") or "notice"), str(body.get("title") or "")
        name = self._adapter.ids.new("notice")
        return self._emit(turn.notice(name, kind, title, str(body.get("detail") or "")))

    def _compact(self, body: JsonObject, status: str) -> Steps:
        turn = self._owner(body)
        if turn is None:
            return []
        name = f"claude-sdk:compact:{turn.turn_id}"
        if status == "running" and turn.compacted:
            name += f":{self._adapter.ids.new('compaction')}"
        detail = str(body.get("content") or body.get("reason") or "")
        return self._emit(turn.compact(name, status, detail))

    def _message_id(self, turn: OpenTurn, body: JsonObject, kind: str) -> str:
        told = body.get("messageId")
        if isinstance(told, str) and told:
            return told
        word = "assistant" if kind == "text" else "thinking"
        return f"claude-sdk:{word}:{turn.provider_turn_id or turn.turn_id}"

    # ------------------------------------------------------------------ tools

    def _tool_started(self, body: JsonObject) -> Steps:
        turn, call_id = self._owner(body), tools.call_id(body)
        if turn is None or not call_id:
            return []
        return self._emit(turn.start_call(call_id, tools.payload(body)))

    def _tool_updated(self, body: JsonObject) -> Steps:
        turn, call_id = self._owner(body), tools.call_id(body)
        if turn is None or not turn.is_open(call_id):
            return []
        return self._emit(turn.progress(call_id, tools.payload(body)))

    def _tool_ended(self, body: JsonObject, status: str) -> Steps:
        turn, call_id = self._owner(body), tools.call_id(body)
        if turn is None or not call_id:
            return []
        payload = tools.payload(body)
        if status == "failed":
            told = body.get("error")
            payload["error"] = told if isinstance(told, dict) else {"message": str(told or "The call failed.")}
        steps = self._adapter.children.tool_ended(call_id, status, body)
        return steps + self._emit(turn.end_call(call_id, payload, status, tools.file_changes(body)))

    def _plan_updated(self, body: JsonObject) -> Steps:
        turn = self._owner(body)
        if turn is None:
            return []
        todos = [one for one in body.get("entries") or [] if isinstance(one, dict)]
        payload = {
            "name": "update_todo",
            "toolName": "update_todo",
            "callType": "tool",
            "title": "Plan",
            "kind": "other",
            "input": {"todos": todos},
        }
        return self._emit(turn.end_call(f"plan:{turn.provider_turn_id or turn.turn_id}", payload, "completed"))

    # ------------------------------------------------------------------ children and questions

    def _task_started(self, body: JsonObject) -> Steps:
        return self._adapter.children.started(body)

    def _task_progress(self, body: JsonObject) -> Steps:
        return self._adapter.children.progress(body)

    def _task_completed(self, body: JsonObject) -> Steps:
        return self._adapter.children.completed(body)

    def _task_result(self, body: JsonObject) -> Steps:
        return self._adapter.children.result(body)

    def _quiesced(self, body: JsonObject) -> Steps:
        return self._adapter.children.end_all("interrupted", None) if body.get("runningCount") == 0 else []

    def _asked(self, body: JsonObject) -> Steps:
        turn = self._owner(body)
        return self._adapter.interactions.asked(turn, body) if turn is not None else []

    def _resolved(self, body: JsonObject) -> Steps:
        return self._adapter.interactions.resolved(body)

    # ------------------------------------------------------------------ helpers

    def _owner(self, body: JsonObject) -> OpenTurn | None:
        """The Turn an event belongs to: that of the child it names, else the root's."""
        child = self._adapter.children.owner(body)
        if child is not None:
            return child if not child.ended else None
        return self._adapter.live_turn

    def _emit(self, events: list[AgentEvent]) -> Steps:
        return [Emit(event) for event in events]
