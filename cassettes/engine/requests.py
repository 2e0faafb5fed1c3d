"""Settings, answers to Interactions, plans and goals (replay-runtime §2.9-§2.12)."""

from __future__ import annotations

from typing import Any

from cassettes.engine import queue
from cassettes.engine.contract import interaction_key
from cassettes.engine.ports import Command, CommandResult
from cassettes.engine.state import (
    EngineState,
    GoalState,
    Outcome,
    PlanDecision,
    SettingsState,
    SettingsUpdate,
    runtime_blocked,
    succeeded,
)

JsonObject = dict[str, Any]
_TIMEOUT_MS = 30_000
_DEFINITIVE = {
    "invalid_request",
    "method_not_allowed",
    "unauthorized",
    "workspace_not_found",
    "workspace_agent_not_found",
}
_GOAL_STATUS = {"set": "active", "pause": "paused", "resume": "active"}


def settings_requested(state: EngineState, intent: JsonObject, out: Outcome, kind: str = "user") -> None:
    """`session/settingsUpdateRequested`, or settings that a prompt needs first."""
    session_id, settings = str(intent.get("agentSessionId") or ""), intent.get("settings")
    if session_id not in state.sessions or not isinstance(settings, dict) or not intent.get("commandId"):
        return
    record = state.settings.setdefault(session_id, SettingsState())
    update = SettingsUpdate(
        command_id=str(intent["commandId"]),
        settings=dict(settings),
        kind="promptPrecondition" if kind == "promptPrecondition" else "user",
        timeout_ms=int(intent.get("timeoutMs") or _TIMEOUT_MS),
    )
    if runtime_blocked(state, session_id) and update.kind == "user":
        return
    if record.status in {"unknown", "failed"} and update.kind == "user":
        if record.status == "unknown" and intent.get("retry") is not True:
            return
        uncertain = record.current.settings if record.current is not None and record.status == "unknown" else {}
        update.settings = {**uncertain, **update.settings}
        record.status, record.current = "idle", None
    if record.status == "idle":
        _start_settings(session_id, record, update, out)
        return
    last = record.backlog[-1] if record.backlog else None
    if last is not None and last.kind == "user" and update.kind == "user":
        last.settings = {**last.settings, **update.settings}
        last.command_id = update.command_id
    else:
        record.backlog.append(update)


def settings_updated(state: EngineState, command: Command, result: CommandResult, out: Outcome) -> None:
    """The result of `session/updateSettings`."""
    session_id = command.agent_session_id
    record = state.settings.get(session_id)
    current = record.current if record is not None else None
    if record is None or current is None or current.command_id != command.command_id:
        return
    if current.kind == "promptPrecondition":
        record.status, record.current = "idle", None
        queue.send_prepared(state, session_id, succeeded(result), _precondition(result), out)
        _next_settings(session_id, record, out)
        return
    if succeeded(result) and result.result.get("agentSessionId") == session_id:
        record.status, record.current = "idle", None
        _next_settings(session_id, record, out)
    else:
        record.status = "failed" if result.outcome == "failed" else "unknown"


def heal_settings(state: EngineState, session_id: str, out: Outcome) -> None:
    """An uncertain patch that the canonical session shows in force has succeeded."""
    record, session = state.settings.get(session_id), state.sessions.get(session_id)
    if record is None or session is None or record.status != "unknown" or record.current is None:
        return
    if all(session.settings.get(name) == value for name, value in record.current.settings.items()):
        record.status, record.current = "idle", None
        _next_settings(session_id, record, out)


def respond(state: EngineState, intent: JsonObject, out: Outcome) -> None:
    """`interaction/responseRequested`."""
    session_id = str(intent.get("agentSessionId") or "")
    key = interaction_key(session_id, str(intent.get("turnId") or ""), str(intent.get("requestId") or ""))
    found = state.interactions.get(key)
    if found is None or found.status != "pending" or session_id not in state.sessions:
        return
    answer = {name: intent[name] for name in ("action", "optionId", "payload") if intent.get(name) is not None}
    retry = intent.get("retry") is True and answer == found.answer
    if runtime_blocked(state, session_id) or found.response == "responding" or (found.response and not retry):
        return
    found.response, found.answer = "responding", answer
    out.commands.append(
        Command(
            type="interaction/respond",
            command_id=str(intent.get("commandId") or ""),
            correlation_id=key,
            agent_session_id=session_id,
            timeout_ms=int(intent.get("timeoutMs") or _TIMEOUT_MS),
            payload={"turnId": found.turn_id, "requestId": found.request_id, **answer},
        )
    )


def responded(state: EngineState, command: Command, result: CommandResult) -> None:
    """An answer stays `unknown` until the canonical state shows it."""
    found = state.interactions.get(command.correlation_id)
    if found is not None and found.response == "responding":
        found.response = "failed" if result.outcome == "failed" else "unknown"


def decide_plan(state: EngineState, intent: JsonObject, out: Outcome) -> None:
    """`plan/decisionRequested`."""
    session_id, turn_id = str(intent.get("agentSessionId") or ""), str(intent.get("turnId") or "")
    request_id, idempotency = str(intent.get("requestId") or ""), str(intent.get("idempotencyKey") or "")
    turn = state.turn(session_id, turn_id)
    if session_id not in state.sessions or turn is None or turn.outcome != "completed" or not idempotency:
        return
    key = interaction_key(session_id, turn_id, request_id)
    known = state.plans.get(key)
    if known is not None:
        again = intent.get("retry") is True and known.idempotency_key == idempotency and known.status != "requested"
        if not again:
            return
    state.plans[key] = PlanDecision(idempotency)
    names = ("turnId", "requestId", "action", "promptKind", "idempotencyKey", "payload")
    out.commands.append(
        Command(
            type="plan/submitDecision",
            command_id=str(intent.get("commandId") or ""),
            correlation_id=key,
            agent_session_id=session_id,
            timeout_ms=int(intent.get("timeoutMs") or _TIMEOUT_MS),
            payload={name: intent[name] for name in names if intent.get(name) is not None},
        )
    )


def plan_decided(state: EngineState, command: Command, result: CommandResult) -> None:
    """The result of `plan/submitDecision`."""
    known = state.plans.get(command.correlation_id)
    if known is None:
        return
    operation = result.result.get("state")
    if succeeded(result) and operation == "completed":
        del state.plans[command.correlation_id]
        state.dismissed_plans.add((command.agent_session_id, str(command.payload.get("turnId") or "")))
    elif succeeded(result) and operation in {"prepared", "leased"}:
        known.status, known.operation_id = "unknown", str(result.result.get("operationId") or "")
    else:
        known.status = "failed" if result.outcome == "failed" or operation == "failed" else "unknown"


def control_goal(state: EngineState, intent: JsonObject, out: Outcome) -> None:
    """`goal/controlRequested`."""
    session_id, action = str(intent.get("agentSessionId") or ""), str(intent.get("action") or "")
    goal = state.goals.setdefault(session_id, GoalState())
    objective = intent.get("objective")
    if session_id not in state.sessions or goal.status == "pending" or (action == "set" and not objective):
        return
    if action == "set":
        goal.goal = {"objective": objective, "status": "active"}
    elif action == "clear":
        goal.goal = None
    elif goal.goal is not None:
        goal.goal = {**goal.goal, "status": _GOAL_STATUS.get(action, "active")}
    goal.status, goal.command_id = "pending", str(intent.get("commandId") or "")
    names = ("action", "clientSubmitId", "objective")
    out.commands.append(
        Command(
            type="goal/control",
            command_id=goal.command_id,
            correlation_id=str(intent.get("clientSubmitId") or ""),
            agent_session_id=session_id,
            timeout_ms=int(intent.get("timeoutMs") or _TIMEOUT_MS),
            payload={name: intent[name] for name in names if intent.get(name) is not None},
        )
    )


def goal_controlled(state: EngineState, command: Command, result: CommandResult) -> None:
    """The result of `goal/control` (contract `goal-control-v1`)."""
    goal = state.goals.get(command.agent_session_id)
    if goal is None or goal.command_id != command.command_id:
        return
    sync = result.result.get("syncStatus")
    if not succeeded(result):
        definitive = result.outcome == "failed" and result.error_code in _DEFINITIVE
        goal.status = "failed" if definitive else "unknown"
    elif sync in {"pending", "applying"}:
        goal.status = "accepted"
    elif sync in {"diverged", "unknown"}:
        goal.status = "unknown"
    else:
        goal.status = "failed" if sync == "failed" else "succeeded"


def _start_settings(session_id: str, record: SettingsState, update: SettingsUpdate, out: Outcome) -> None:
    record.status, record.current = "inFlight", update
    out.commands.append(
        Command(
            type="session/updateSettings",
            command_id=update.command_id,
            correlation_id=session_id,
            agent_session_id=session_id,
            timeout_ms=update.timeout_ms,
            payload={"settings": update.settings},
        )
    )


def _next_settings(session_id: str, record: SettingsState, out: Outcome) -> None:
    if record.backlog and record.status == "idle":
        _start_settings(session_id, record, record.backlog.pop(0), out)


def _precondition(result: CommandResult) -> str:
    return "settings_precondition_timeout" if result.outcome == "timedOut" else "settings_precondition_failed"
