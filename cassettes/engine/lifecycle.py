"""Activation, cancel and stop, and what canonical observations change (replay-runtime §2.2, §2.7, §2.8)."""

from __future__ import annotations

from typing import Any

from cassettes.engine import queue
from cassettes.engine.contract import interaction_key, scoped_key
from cassettes.engine.ports import Command, CommandResult
from cassettes.engine.state import (
    ActivationRecord,
    CancelState,
    EngineState,
    Expiry,
    InteractionView,
    Outcome,
    SessionView,
    TurnView,
    runtime_blocked,
    succeeded,
)

JsonObject = dict[str, Any]
_NEW_TIMEOUT_MS = 90_000
_EXISTING_TIMEOUT_MS = 30_000
_CANCEL_TIMEOUT_MS = 30_000
_ACTIVATION = [
    "mode",
    "agentTargetId",
    "clientSubmitId",
    "runtimeContent",
    "initialDisplayPrompt",
    "initialGoalControl",
    "initialTuttiModeActivation",
    "cwd",
    "railPlacement",
    "railSectionKey",
    "settings",
    "title",
    "visible",
    "capabilityRefs",
    "submitDiagnostics",
]


def session_upserted(state: EngineState, row: JsonObject) -> None:
    """A canonical Session appeared or changed."""
    session_id = str(row.get("id") or row.get("agentSessionId") or "")
    workspace = row.get("workspaceId")
    if not session_id or session_id in state.deleted or (workspace and workspace != state.workspace_id):
        return
    view = state.sessions.setdefault(session_id, SessionView(session_id))
    view.active_turn_id = str(row.get("activeTurnId") or "")
    view.settings = dict(row.get("settings") or {})
    capabilities = row.get("capabilities")
    if isinstance(capabilities, dict):
        view.guidance = bool(capabilities.get("activeTurnGuidance", True))
        view.interrupt = bool(capabilities.get("interrupt", True))
    for activation in state.activations.values():
        if activation.session_id == session_id and activation.status in {"requested", "uncertain"}:
            activation.status = "confirmed"
            state.expiries.pop(f"activation:{activation.request_id}", None)


def turn_upserted(state: EngineState, session_id: str, row: JsonObject) -> None:
    """A canonical Turn appeared or changed. A settled Turn stays settled."""
    turn_id = str(row.get("id") or "")
    key = scoped_key(session_id, turn_id)
    known = state.turns.get(key)
    if not turn_id or (known is not None and known.settled):
        return
    state.turns[key] = TurnView(turn_id, str(row.get("phase") or "submitted"), str(row.get("outcome") or ""))
    if not state.turns[key].settled:
        return
    cancel = state.cancels.get(session_id)
    if cancel is not None and cancel.turn_id == turn_id and cancel.status in {"accepted", "unknown"}:
        del state.cancels[session_id]
    for submit in state.submits.values():
        if submit.session_id == session_id and submit.turn_id == turn_id and submit.status == "accepted":
            submit.status = "confirmed"


def interaction_upserted(state: EngineState, session_id: str, row: JsonObject) -> None:
    """A canonical Interaction appeared or changed; one that is no longer pending needs no answer."""
    turn_id, request_id = str(row.get("turnId") or ""), str(row.get("requestId") or "")
    key = interaction_key(session_id, turn_id, request_id)
    status = str(row.get("status") or "pending")
    known = state.interactions.get(key)
    if known is None:
        state.interactions[key] = InteractionView(session_id, turn_id, request_id, status)
        return
    known.status = status
    if status != "pending":
        known.response, known.answer = "", {}


def session_removed(state: EngineState, session_id: str) -> None:
    """The Session is gone, and its queue with it."""
    state.deleted.add(session_id)
    state.sessions.pop(session_id, None)
    state.queues.pop(session_id, None)


def activate(state: EngineState, intent: JsonObject, now: int, out: Outcome) -> None:
    """`activation/requested`."""
    session_id, request_id = str(intent.get("agentSessionId") or ""), str(intent.get("requestId") or "")
    new = str(intent.get("mode") or "new") == "new"
    request_id = request_id or str(intent.get("clientSubmitId") or "")
    if not session_id or not request_id or session_id in state.deleted or request_id in state.activations:
        return
    if new and not (intent.get("agentTargetId") and intent.get("clientSubmitId")):
        return
    for other in state.activations.values():
        if other.session_id == session_id and other.status in {"requested", "uncertain"}:
            other.status = "canceled"
    command_id = f"activate:{request_id}"
    state.activations[request_id] = ActivationRecord(request_id, session_id, command_id)
    expires = intent.get("expiresAtUnixMs")
    due = int(expires) if isinstance(expires, int | float) else now + 120_000
    expired = {"type": "engine/intentExpired", "what": "activation", "id": request_id, "agentSessionId": session_id}
    state.expiries[f"activation:{request_id}"] = Expiry(due, expired)
    payload = {name: intent[name] for name in _ACTIVATION if intent.get(name) not in (None, "")}
    if intent.get("content"):
        payload["initialContent"] = intent["content"]
    out.commands.append(
        Command(
            type="session/activate",
            command_id=command_id,
            correlation_id=request_id,
            agent_session_id=session_id,
            timeout_ms=_NEW_TIMEOUT_MS if new else _EXISTING_TIMEOUT_MS,
            payload=payload,
        )
    )


def activated(state: EngineState, command: Command, result: CommandResult) -> None:
    """The result of `session/activate`."""
    record = state.activations.get(command.correlation_id)
    if record is None or record.status not in {"requested", "uncertain"}:
        return
    if result.outcome == "timedOut":
        record.status = "uncertain"
    elif not succeeded(result):
        record.status = "failed"


def expire_activation(state: EngineState, request_id: str) -> None:
    """An activation that nothing confirmed has failed (`activation_confirmation_expired`)."""
    record = state.activations.get(request_id)
    if record is not None and record.status in {"requested", "uncertain"}:
        record.status = "failed"


def cancel(state: EngineState, intent: JsonObject, now: int, out: Outcome) -> None:
    """`session/cancelRequested` and `session/stopRequested`."""
    session_id, command_id = str(intent.get("agentSessionId") or ""), str(intent.get("commandId") or "")
    if intent.get("type") == "session/stopRequested":
        _stop(state, session_id)
    current = state.cancels.get(session_id)
    busy = current is not None and current.status in {"requested", "awaitingTurn"}
    if not session_id or not command_id or session_id in state.deleted or busy or runtime_blocked(state, session_id):
        return
    timeout = int(intent.get("timeoutMs") or _CANCEL_TIMEOUT_MS)
    submit_id = str(intent.get("clientSubmitId") or "")
    request = CancelState("awaitingTurn", command_id, submit_id=submit_id, timeout_ms=timeout)
    state.cancels[session_id] = request
    if emit_cancel(state, session_id, out):
        return
    due = intent.get("awaitingTurnExpiresAtUnixMs")
    expired = {"type": "engine/intentExpired", "what": "cancel", "id": session_id, "agentSessionId": session_id}
    state.expiries[f"cancel:awaiting-turn:{command_id}"] = Expiry(
        int(due) if isinstance(due, int | float) else now + timeout, expired
    )


def emit_cancel(state: EngineState, session_id: str, out: Outcome) -> bool:
    """Give out `turn/cancel` for a cancel that waits, once its Turn is known."""
    request = state.cancels.get(session_id)
    if request is None or request.status != "awaitingTurn":
        return False
    turn = state.active_turn(session_id)
    if request.submit_id:
        submit = state.submits.get(request.submit_id)
        turn = state.turn(session_id, submit.turn_id) if submit is not None and submit.turn_id else None
    if turn is None or turn.settled:
        return False
    request.status, request.turn_id = "requested", turn.id
    state.expiries.pop(f"cancel:awaiting-turn:{request.command_id}", None)
    out.commands.append(
        Command(
            type="turn/cancel",
            command_id=request.command_id,
            agent_session_id=session_id,
            timeout_ms=request.timeout_ms,
            payload={"turnId": turn.id},
        )
    )
    return True


def canceled(state: EngineState, command: Command, result: CommandResult, out: Outcome) -> None:
    """The result of `turn/cancel`."""
    session_id = command.agent_session_id
    request = state.cancels.get(session_id)
    if request is None or request.command_id != command.command_id:
        return
    status, done = result.result.get("status"), result.result.get("canceled")
    if result.outcome == "failed":
        request.status = "failed"
    elif succeeded(result) and status == "cancel_requested" and done is False:
        request.status = "accepted"
    elif succeeded(result) and status in {"turn_canceled", "already_settled", "not_found"}:
        del state.cancels[session_id]
        if status != "turn_canceled":
            out.commands.append(_reconcile_workspace(command))
    else:
        request.status = "unknown"
        out.commands.append(_reconcile_workspace(command))


def expire_cancel(state: EngineState, session_id: str) -> None:
    """No Turn came that could be canceled: the wish is dropped."""
    request = state.cancels.get(session_id)
    if request is not None and request.status == "awaitingTurn":
        del state.cancels[session_id]


def _stop(state: EngineState, session_id: str) -> None:
    record = state.queues.get(session_id)
    if record is not None and record.prompts:
        queue.record(state, session_id).suspended = True
    for activation in state.activations.values():
        if activation.session_id == session_id and activation.status in {"requested", "uncertain"}:
            activation.status = "canceled"


def _reconcile_workspace(cause: Command) -> Command:
    return Command(
        type="engine/reconcileWorkspace",
        command_id=f"reconcile:{cause.command_id}",
        agent_session_id=cause.agent_session_id,
        timeout_ms=30_000,
    )
