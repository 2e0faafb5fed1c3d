"""The activity engine of one workspace: intents in, commands out (replay-runtime §2).

Nothing here waits, opens or reads anything but the given clock. `dispatch`, `settle` and `expire` give the commands
that the caller has to carry out, in order; each command comes back through `settle` exactly once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from cassettes.engine import lifecycle, queue, requests
from cassettes.engine.contract import interaction_key
from cassettes.engine.ports import Command, CommandResult, EngineObserver
from cassettes.engine.state import EngineState, Outcome, Running, runtime_blocked

__all__ = ["ActivityEngine", "Command", "CommandResult"]

JsonObject = dict[str, Any]
_NEEDS_IDENTITY = "agentSessionId"


class ActivityEngine:
    """State and reduction of one workspace. `now` gives epoch milliseconds."""

    def __init__(self, workspace_id: str, now: Callable[[], int]) -> None:
        self.workspace_id = workspace_id
        self.observers: list[EngineObserver] = []
        self._now = now
        self._state = EngineState(workspace_id)
        self._running: dict[str, Running] = {}

    # ------------------------------------------------------------------ what comes in

    def dispatch(self, intent: JsonObject) -> list[Command]:
        """Reduce an intent and everything that follows from it."""
        return self._reduce_all(deque([intent]))

    def settle(self, command_id: str, result: CommandResult) -> list[Command]:
        """A command has come to its end. A second end, or that of a command nobody knows, is ignored."""
        running = self._running.pop(command_id, None)
        if running is None:
            return []
        for observer in self.observers:
            observer.on_command_result(running.command, result)
        out = Outcome()
        self._settled(running.command, result, out)
        waiting: deque[JsonObject] = deque()
        commands = self._finish(out, running.command.agent_session_id, waiting)
        return commands + self._reduce_all(waiting)

    def expire(self) -> list[Command]:
        """Let every deadline that has come take effect."""
        now = self._now()
        commands: list[Command] = []
        for name, expiry in sorted(self._state.expiries.items(), key=lambda item: (item[1].due, item[0])):
            if expiry.due <= now and self._state.expiries.pop(name, None) is not None:
                commands += self.dispatch(expiry.intent)
        late = [one.command.command_id for one in self._running.values() if 0 < one.due <= now]
        for command_id in late:
            commands += self.settle(command_id, CommandResult(outcome="timedOut", error_code="timeout"))
        return commands

    # ------------------------------------------------------------------ what can be asked

    def next_expiry(self) -> int | None:
        """When `expire` has something to do, in epoch milliseconds."""
        dues = [one.due for one in self._state.expiries.values()]
        dues += [one.due for one in self._running.values() if one.due]
        return min(dues, default=None)

    def is_idle(self, session_id: str) -> bool:
        """Canonical idle: the session is known, no Turn goes on and nothing is asked (replay-runtime §4)."""
        state = self._state
        known = session_id in state.sessions
        return known and state.active_turn(session_id) is None and not state.pending_interactions(session_id)

    def intent_ready(self, intent: JsonObject) -> bool:
        """May a recorded intent be dispatched now? (replay-runtime §4.1)"""
        state = self._state
        session_id = str(intent.get("agentSessionId") or "")
        known = session_id in state.sessions
        match intent.get("type"):
            case "activation/requested":
                return intent.get("mode") != "existing" or known
            case "goal/controlRequested":
                goal = state.goals.get(session_id)
                free = goal is None or goal.status not in {"pending", "unknown"}
                return known and not runtime_blocked(state, session_id) and free
            case "interaction/responseRequested":
                key = interaction_key(session_id, str(intent.get("turnId") or ""), str(intent.get("requestId") or ""))
                found = state.interactions.get(key)
                return found is not None and found.status == "pending"
            case "plan/decisionRequested":
                turn = state.turn(session_id, str(intent.get("turnId") or ""))
                return known and turn is not None and turn.settled and turn.outcome == "completed"
            case "session/cancelRequested" | "session/stopRequested":
                active = state.active_turn(session_id)
                return active is not None and intent.get("turnId") in (None, "", active.id)
            case "session/settingsUpdateRequested":
                return known
            case "submit/requested":
                diagnostics = intent.get("submitDiagnostics")
                queued = isinstance(diagnostics, dict) and diagnostics.get("queued") is True
                return not queued or queue.would_queue(state, session_id)
            case _:
                return True

    def queue_view(self, session_id: str) -> JsonObject:
        """The prompt queue of a session, for people."""
        record = self._state.queues.get(session_id)
        if record is None:
            return {"prompts": [], "suspended": False}
        moving = record.in_flight.prompt.id if record.in_flight is not None else ""
        prompts = [
            {
                "id": one.id,
                "content": one.body.get("content") or one.body.get("runtimeContent") or [],
                "displayPrompt": one.body.get("displayPrompt") or "",
                "guidance": one.guidance,
                "failed": one.id == record.failed_prompt_id,
            }
            for one in record.prompts
            if one.id != moving
        ]
        return {"prompts": prompts, "suspended": record.suspended}

    # ------------------------------------------------------------------ reduction

    def _reduce_all(self, waiting: deque[JsonObject]) -> list[Command]:
        commands: list[Command] = []
        while waiting:
            intent = waiting.popleft()
            workspace = intent.get("workspaceId")
            if workspace and workspace != self.workspace_id:
                continue
            intent = queue.stamp(self._state, intent)
            for observer in self.observers:
                observer.on_intent(intent)
            out = Outcome()
            self._reduce(intent, out)
            session_id = str(intent.get("agentSessionId") or (intent.get("session") or {}).get("id") or "")
            commands += self._finish(out, session_id, waiting)
        return commands

    def _finish(self, out: Outcome, session_id: str, waiting: deque[JsonObject]) -> list[Command]:
        """Drain the queue of the session, register the commands, and put follow-ups before what waits."""
        state = self._state
        if session_id:
            lifecycle.emit_cancel(state, session_id, out)
            if not out.no_drain:
                queue.drain(state, session_id, out)
        now = self._now()
        for command in out.commands:
            self._running[command.command_id] = Running(command, now + command.timeout_ms if command.timeout_ms else 0)
            for observer in self.observers:
                observer.on_command(command)
        waiting.extendleft(reversed(out.follow_ups))
        return out.commands

    def _reduce(self, intent: JsonObject, out: Outcome) -> None:
        state, now = self._state, self._now()
        session_id = str(intent.get(_NEEDS_IDENTITY) or "")
        match intent.get("type"):
            case "session/upserted":
                row = intent.get("session") or {}
                lifecycle.session_upserted(state, row)
                requests.heal_settings(state, str(row.get("id") or ""), out)
            case "turn/upserted":
                lifecycle.turn_upserted(state, session_id, intent.get("turn") or {})
            case "interaction/upserted":
                lifecycle.interaction_upserted(state, session_id, intent.get("interaction") or {})
            case "message/snapshotReceived":
                queue.delivered(state, session_id, intent.get("message") or {})
            case "session/removed":
                lifecycle.session_removed(state, session_id)
            case "activation/requested":
                lifecycle.activate(state, intent, now, out)
            case "submit/requested":
                queue.submit(state, intent, now, out)
            case "plan/feedbackRequested":
                state.dismissed_plans.add((session_id, str(intent.get("turnId") or "")))
                queue.submit(state, {**intent, "routing": "auto"}, now, out)
            case "plan/skipped":
                state.dismissed_plans.add((session_id, str(intent.get("turnId") or "")))
            case "plan/decisionRequested":
                requests.decide_plan(state, intent, out)
            case "submit/canceled":
                queue.remove(state, session_id, str(intent.get("clientSubmitId") or ""))
            case "queue/enqueued":
                queue.enqueue(state, intent)
            case "queue/removed":
                queue.remove(state, session_id, str(intent.get("promptId") or ""))
            case "queue/sendNowRequested":
                queue.send_now_requested(state, intent, out)
            case "queue/suspended":
                record = state.queues.get(session_id)
                if record is not None and record.prompts:
                    record.suspended = True
            case "queue/resumed":
                queue.record(state, session_id).suspended = False
            case "session/cancelRequested" | "session/stopRequested":
                lifecycle.cancel(state, intent, now, out)
            case "session/settingsUpdateRequested":
                requests.settings_requested(state, intent, out)
            case "session/settingsPreconditionRequested":
                requests.settings_requested(state, intent, out, "promptPrecondition")
            case "interaction/responseRequested":
                requests.respond(state, intent, out)
            case "goal/controlRequested":
                requests.control_goal(state, intent, out)
            case "engine/intentExpired":
                self._expired(intent, now)

    def _expired(self, intent: JsonObject, now: int) -> None:
        name = str(intent.get("id") or "")
        match intent.get("what"):
            case "submit":
                queue.expire_submit(self._state, name, now)
            case "activation":
                lifecycle.expire_activation(self._state, name)
            case "cancel":
                lifecycle.expire_cancel(self._state, name)

    def _settled(self, command: Command, result: CommandResult, out: Outcome) -> None:
        state = self._state
        match command.type:
            case "session/activate":
                lifecycle.activated(state, command, result)
            case "queue/sendPrompt":
                queue.sent(state, command, result, out)
            case "turn/cancel":
                lifecycle.canceled(state, command, result, out)
            case "session/updateSettings":
                requests.settings_updated(state, command, result, out)
            case "interaction/respond":
                requests.responded(state, command, result)
            case "plan/submitDecision":
                requests.plan_decided(state, command, result)
            case "goal/control":
                requests.goal_controlled(state, command, result)
            case "session/reconcile":
                queue.reconciled(state, command, result)
