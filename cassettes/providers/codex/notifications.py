"""What the app-server tells on its own (provider-adapters §4.4, §4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassettes.host.events import AgentEvent, SessionEvent
from cassettes.providers.codex import items
from cassettes.providers.codex.thread import Thread
from cassettes.providers.ports import Emit, Steps
from cassettes.providers.turns import OpenTurn

if TYPE_CHECKING:
    from cassettes.providers.codex.adapter import CodexAdapter

JsonObject = dict[str, Any]
_EARLY_CALLS = 64
_ADVISORY = "Heads up: Long threads"
_ADVISORY_LENGTH = 157
_GOAL_NOTICES = {"blocked", "usageLimited", "budgetLimited"}
_AFTER_CANCEL = {"turn/started", "turn/completed"}


class Notifications:
    """Turns notifications into steps. Unknown methods and unknown threads give none."""

    def __init__(self, adapter: CodexAdapter) -> None:
        self._adapter = adapter
        self._handlers = {
            "turn/started": self._turn_started,
            "turn/completed": self._turn_completed,
            "item/started": self._item_started,
            "item/completed": self._item_completed,
            "item/agentMessage/delta": self._agent_delta,
            "item/reasoning/textDelta": self._reasoning_delta,
            "item/reasoning/summaryTextDelta": self._reasoning_delta,
            "item/commandExecution/outputDelta": self._output_delta,
            "turn/plan/updated": self._plan_updated,
            "thread/name/updated": self._name_updated,
            "thread/tokenUsage/updated": self._usage,
            "account/rateLimits/updated": self._usage,
            "thread/compacted": self._compacted,
            "thread/goal/updated": self._goal_updated,
            "thread/goal/cleared": self._goal_cleared,
            "serverRequest/resolved": self._resolved,
            "error": self._error,
            "warning": self._warning,
            "deprecationNotice": self._deprecation,
            "model/rerouted": self._rerouted,
        }

    def receive(self, method: str, given: JsonObject) -> Steps:
        handler = self._handlers.get(method)
        thread = self._adapter.thread(given.get("threadId"))
        if handler is None or thread is None:
            return []
        turn = thread.live_turn
        if not thread.child and turn is not None and turn.canceled and method not in _AFTER_CANCEL:
            return []
        return handler(thread, given)

    # ------------------------------------------------------------------ Turns

    def _turn_started(self, thread: Thread, given: JsonObject) -> Steps:
        turn_id = _object(given.get("turn")).get("id")
        if thread.child and thread.turn is not None and thread.turn.ended and isinstance(turn_id, str):
            lineage = thread.turn.lineage
            thread.turn = OpenTurn(thread.session_id, self._adapter.ids.new("turn"), lineage)
        return self._adapter.bind(thread, turn_id) if isinstance(turn_id, str) and turn_id else []

    def _turn_completed(self, thread: Thread, given: JsonObject) -> Steps:
        told = _object(given.get("turn"))
        turn = thread.live_turn
        if turn is None:
            return []
        other = turn.provider_turn_id and told.get("id") and told["id"] != turn.provider_turn_id
        if other and turn.confirmed:
            return []
        status = str(told.get("status") or "completed")
        steps: Steps = []
        final = [one for one in told.get("items") or [] if _object(one).get("type") == "agentMessage"]
        if final:
            item = final[-1]
            steps += self._emit(self._finish_text(turn, str(item.get("id") or ""), str(item.get("text") or "")))
        if status == "interrupted":
            return steps + self._adapter.end_turn(thread, "canceled")
        if status == "failed":
            return steps + self._adapter.end_turn(thread, "failed", _error_body(told.get("error")))
        return steps + self._adapter.end_turn(thread, "completed")

    def _error(self, thread: Thread, given: JsonObject) -> Steps:
        turn = thread.live_turn
        if turn is None:
            return []
        body = _error_body(given.get("error"))
        if given.get("willRetry") is True:
            return self._notice(turn, "transport_retry", str(body["message"]), "", "warning")
        if given.get("turnId") and turn.confirmed and given["turnId"] != turn.provider_turn_id:
            return []
        return self._adapter.end_turn(thread, "failed", body)

    # ------------------------------------------------------------------ items

    def _item_started(self, thread: Thread, given: JsonObject) -> Steps:
        turn, item = thread.live_turn, _object(given.get("item"))
        if turn is None:
            return []
        kind, name = item.get("type"), str(item.get("id") or "")
        if kind == "contextCompaction":
            return self._emit(turn.compact(f"compaction:{name}", "running"))
        if kind == "enteredReviewMode":
            return self._notice(turn, "review", "Code review started.", str(item.get("review") or ""))
        payload = items.call_payload(item, done=False)
        if payload is None or not name:
            return []
        steps = self._emit(turn.start_call(name, payload))
        for delta in thread.early_output.pop(name, []):
            steps += self._emit(turn.output(name, delta))
        return steps + self._children(thread, item)

    def _item_completed(self, thread: Thread, given: JsonObject) -> Steps:
        turn, item = thread.live_turn, _object(given.get("item"))
        if turn is None:
            return []
        kind, name = item.get("type"), str(item.get("id") or "")
        match kind:
            case "agentMessage":
                return self._emit(self._finish_text(turn, name, str(item.get("text") or "")))
            case "reasoning":
                text = items.reasoning_text(item)
                return self._emit(turn.finish(f"reasoning:{name}", "reasoning", self._message_id(), text))
            case "plan":
                return self._emit(turn.plan(name, str(item.get("text") or "")))
            case "contextCompaction":
                return self._emit(turn.compact(f"compaction:{name}", "completed"))
            case "exitedReviewMode":
                return self._notice(turn, "review", "Code review finished.", str(item.get("review") or ""))
            case "subAgentActivity":
                return self._activity(thread, turn, item, name)
        payload = items.call_payload(item, done=True)
        if payload is None or not name:
            return []
        failed = items.failed(item)
        if failed:
            error = _object(item.get("error"))
            text = str(error.get("message") or _object(payload.get("output")).get("text") or "")
            payload["error"] = {"message": text or f"{payload['title']} failed"}
        steps = self._children(thread, item)
        status = "failed" if failed else "completed"
        return steps + self._emit(turn.end_call(name, payload, status, items.file_changes(item)))

    def _children(self, thread: Thread, item: JsonObject) -> Steps:
        """Child threads that a delegation names."""
        if item.get("type") != "collabAgentToolCall" or str(item.get("tool")) not in ("spawnAgent", "spawn_agent"):
            return []
        steps: Steps = []
        for child in item.get("receiverThreadIds") or []:
            if isinstance(child, str) and child:
                steps += self._adapter.open_child(thread, child, str(item.get("id") or ""))
        return steps

    def _activity(self, thread: Thread, turn: OpenTurn, item: JsonObject, name: str) -> Steps:
        child = item.get("agentThreadId")
        if item.get("kind") != "started" or not isinstance(child, str):
            return []
        opened = self._adapter.open_child(thread, child, name)
        if not opened:
            return []
        given = {"agentName": item.get("agentName"), "receiverThreadIds": [child]}
        payload = {
            "name": "spawnAgent",
            "toolName": "spawnAgent",
            "callType": "subagent",
            "title": "spawnAgent",
            "kind": "execute",
            "input": given,
        }
        return self._emit(turn.end_call(name, payload, "completed")) + opened

    # ------------------------------------------------------------------ streams

    def _agent_delta(self, thread: Thread, given: JsonObject) -> Steps:
        turn, name = thread.live_turn, str(given.get("itemId") or "")
        if turn is None:
            return []
        delta = str(given.get("delta") or "")
        return self._emit(turn.grow(f"agent:{name}", "text", self._message_id(), delta))

    def _reasoning_delta(self, thread: Thread, given: JsonObject) -> Steps:
        turn, name = thread.live_turn, str(given.get("itemId") or "")
        if turn is None:
            return []
        delta = str(given.get("delta") or given.get("text") or "")
        return self._emit(turn.grow(f"reasoning:{name}", "reasoning", self._message_id(), delta))

    def _output_delta(self, thread: Thread, given: JsonObject) -> Steps:
        turn, name = thread.live_turn, str(given.get("itemId") or "")
        delta = str(given.get("delta") or "")
        if turn is None:
            return []
        if turn.is_open(name):
            return self._emit(turn.output(name, delta))
        if name in thread.early_output or len(thread.early_output) < _EARLY_CALLS:
            thread.early_output.setdefault(name, []).append(delta)
        return []

    def _plan_updated(self, thread: Thread, given: JsonObject) -> Steps:
        turn = thread.live_turn
        if turn is None or thread.child:
            return []
        words = {"inProgress": "in_progress", "completed": "completed"}
        todos = [
            {"content": str(one.get("step") or ""), "status": words.get(str(one.get("status")), "pending")}
            for one in given.get("plan") or []
            if isinstance(one, dict)
        ]
        body = {"name": "update_todo", "toolName": "update_todo", "callType": "tool", "title": "Plan", "kind": "other"}
        call = f"plan:{given.get('turnId') or turn.provider_turn_id}"
        return self._emit(turn.end_call(call, {**body, "input": {"todos": todos}}, "completed"))

    # ------------------------------------------------------------------ session and notices

    def _name_updated(self, thread: Thread, given: JsonObject) -> Steps:
        title = str(given.get("threadName") or "").strip()
        if not title or title == thread.title:
            return []
        thread.title = title
        lineage = thread.turn.lineage if thread.turn is not None else None
        event = SessionEvent(type="session.updated", session_id=thread.session_id, title=title, lineage=lineage)
        return [Emit(event)]

    def _usage(self, thread: Thread, given: JsonObject) -> Steps:
        if thread.child:
            return []
        return [Emit(SessionEvent(type="session.updated", session_id=thread.session_id, usage=given))]

    def _goal_updated(self, thread: Thread, given: JsonObject) -> Steps:
        goal = _object(given.get("goal"))
        if thread.child or not goal:
            return []
        steps: Steps = [Emit(SessionEvent(type="session.updated", session_id=thread.session_id, goal=goal))]
        turn, status = thread.live_turn, str(goal.get("status") or "")
        if turn is not None and status in _GOAL_NOTICES:
            steps += self._notice(turn, "goal", f"Goal {status}.", str(goal.get("objective") or ""), "warning")
        return steps

    def _goal_cleared(self, thread: Thread, given: JsonObject) -> Steps:
        if thread.child:
            return []
        return [Emit(SessionEvent(type="session.updated", session_id=thread.session_id, goal={}))]

    def _compacted(self, thread: Thread, given: JsonObject) -> Steps:
        turn = thread.live_turn
        if turn is None:
            return []
        return self._emit(turn.compact(f"compaction:{given.get('turnId') or turn.turn_id}", "completed"))

    def _resolved(self, thread: Thread, given: JsonObject) -> Steps:
        return self._adapter.request_resolved(thread, given.get("requestId"))

    def _warning(self, thread: Thread, given: JsonObject) -> Steps:
        turn, message = thread.live_turn, str(given.get("message") or "")
        if turn is None or not message:
            return []
        advisory = message.startswith(_ADVISORY) and len(message) == _ADVISORY_LENGTH
        if advisory and (turn.compaction or turn.compacted):
            return []
        return self._notice(turn, "warning", message, "", "warning")

    def _deprecation(self, thread: Thread, given: JsonObject) -> Steps:
        turn = thread.live_turn
        if turn is None:
            return []
        return self._notice(
            turn, "warning", str(given.get("summary") or ""), str(given.get("details") or ""), "warning"
        )

    def _rerouted(self, thread: Thread, given: JsonObject) -> Steps:
        turn = thread.live_turn
        if turn is None:
            return []
        title = f"Model changed from {given.get('fromModel')} to {given.get('toModel')}."
        return self._notice(turn, "model_rerouted", title, str(given.get("reason") or ""))

    # ------------------------------------------------------------------ helpers

    def _finish_text(self, turn: OpenTurn, item_id: str, text: str) -> list[AgentEvent]:
        return turn.finish(f"agent:{item_id}", "text", self._message_id(), text)

    def _notice(self, turn: OpenTurn, kind: str, title: str, detail: str, severity: str = "info") -> Steps:
        return self._emit(turn.notice(self._adapter.ids.new("notice"), kind, title, detail, severity))

    def _message_id(self) -> str:
        return self._adapter.ids.new("message")

    def _emit(self, events: list[AgentEvent]) -> Steps:
        return [Emit(event) for event in events]


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _error_body(error: Any) -> JsonObject:
    told = _object(error)
    body: JsonObject = {"message": str(told.get("message") or "The turn failed.")}
    for name in ("codexErrorInfo", "additionalDetails"):
        if told.get(name) is not None:
            body[name] = told[name]
    return body
