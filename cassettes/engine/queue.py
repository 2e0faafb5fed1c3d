"""Submits and the prompt queue (replay-runtime §2.5, §2.6)."""

from __future__ import annotations

from typing import Any

from cassettes.engine.ports import Command, CommandResult
from cassettes.engine.state import (
    EngineState,
    Expiry,
    InFlight,
    Outcome,
    QueuedPrompt,
    QueueRecord,
    SubmitRecord,
    availability,
    succeeded,
)

JsonObject = dict[str, Any]
_SEND_TIMEOUT_MS = 90_000
_RECONCILE_TIMEOUT_MS = 30_000
_BODY = ("content", "runtimeContent", "displayPrompt", "capabilityRefs")


def record(state: EngineState, session_id: str) -> QueueRecord:
    """The queue of a session, made when there is none."""
    return state.queues.setdefault(session_id, QueueRecord())


def would_queue(state: EngineState, session_id: str) -> bool:
    """Visible-queue admission: does a prompt that comes now have to wait?"""
    queue = state.queues.get(session_id)
    if queue is not None and not queue.idle:
        return True
    return availability(state, session_id)[0] != "available"


def stamp(state: EngineState, intent: JsonObject) -> JsonObject:
    """A submit with `submitDiagnostics.queued`, as observers see it."""
    if intent.get("type") != "submit/requested":
        return intent
    auto = str(intent.get("routing") or "auto") == "auto"
    queued = auto and would_queue(state, str(intent.get("agentSessionId") or ""))
    return {**intent, "submitDiagnostics": {**(intent.get("submitDiagnostics") or {}), "queued": queued}}


def submit(state: EngineState, intent: JsonObject, now: int, out: Outcome) -> None:
    """`submit/requested`: queue the prompt, send it at once, or send it before all others."""
    session_id = str(intent.get("agentSessionId") or "")
    submit_id = str(intent.get("clientSubmitId") or "")
    routing = str(intent.get("routing") or "auto")
    if not _acceptable(state, session_id, submit_id, intent, routing):
        return
    prompt = QueuedPrompt(
        id=submit_id,
        client_submit_id=submit_id,
        body={name: intent[name] for name in _BODY if intent.get(name) not in (None, "")},
        routing=routing,
        target_turn_id=str(intent.get("targetTurnId") or ""),
        settings_patch=intent.get("requiredSettingsPatch") or None,
    )
    strategy = send_now_strategy(state, session_id) if routing == "send_now" else ""
    if routing == "send_now" and not strategy:
        return
    _remember(state, submit_id, session_id, intent, now)
    queue = record(state, session_id)
    if routing == "immediate":
        out.no_drain = True
        _send(state, session_id, prompt, f"submit:send:{submit_id}", out, queue)
    elif routing == "send_now":
        queue.prompts.append(prompt)
        apply_send_now(state, session_id, prompt, strategy, f"submit:cancel:{submit_id}", 30_000, out)
    elif queue.suspended:
        queue.suspended = False
        queue.prompts.insert(0, prompt)
    else:
        queue.prompts.append(prompt)


def send_now_requested(state: EngineState, intent: JsonObject, out: Outcome) -> None:
    """`queue/sendNowRequested`: a queued prompt goes first."""
    session_id = str(intent.get("agentSessionId") or "")
    queue = state.queues.get(session_id)
    strategy = send_now_strategy(state, session_id)
    prompt = next((one for one in queue.prompts if one.id == intent.get("promptId")), None) if queue else None
    if prompt is None or not strategy:
        return
    timeout = int(intent.get("timeoutMs") or 30_000)
    apply_send_now(state, session_id, prompt, strategy, str(intent.get("cancelCommandId") or ""), timeout, out)


def send_now_strategy(state: EngineState, session_id: str) -> str:
    """`send_available`, `native_guidance`, `cancel_then_send`, or "" where the intent is ignored."""
    kind, reason = availability(state, session_id)
    session = state.sessions.get(session_id)
    if kind == "available":
        return "send_available"
    if session is not None and reason == "active_turn":
        return "native_guidance" if session.guidance else "cancel_then_send" if session.interrupt else ""
    return ""


def apply_send_now(
    state: EngineState,
    session_id: str,
    prompt: QueuedPrompt,
    strategy: str,
    cancel_id: str,
    timeout_ms: int,
    out: Outcome,
) -> None:
    """Move `prompt` to the front, and do what the strategy says."""
    queue = record(state, session_id)
    queue.prompts.remove(prompt)
    queue.prompts.insert(0, prompt)
    queue.suspended = False
    if queue.failed_prompt_id == prompt.id:
        queue.failed_prompt_id = queue.failure_message = ""
    active = state.active_turn(session_id)
    prompt.guidance = strategy == "native_guidance"
    if prompt.guidance and active is not None:
        prompt.target_turn_id = prompt.target_turn_id or active.id
    if strategy == "cancel_then_send" and active is not None:
        queue.send_next_prompt_id = prompt.id
        out.commands.append(
            Command(
                type="turn/cancel",
                command_id=cancel_id,
                agent_session_id=session_id,
                timeout_ms=timeout_ms,
                payload={"turnId": active.id},
            )
        )


def enqueue(state: EngineState, intent: JsonObject) -> None:
    """`queue/enqueued`."""
    prompt = intent.get("prompt")
    if not isinstance(prompt, dict) or not prompt.get("id") or not prompt.get("content"):
        return
    queue = record(state, str(intent.get("agentSessionId") or ""))
    if any(one.id == prompt["id"] for one in queue.prompts):
        return
    queue.prompts.append(
        QueuedPrompt(
            id=str(prompt["id"]),
            client_submit_id=str(prompt.get("clientSubmitId") or prompt["id"]),
            body={name: prompt[name] for name in _BODY if prompt.get(name) not in (None, "")},
        )
    )


def remove(state: EngineState, session_id: str, prompt_id: str) -> None:
    """`queue/removed`, `submit/canceled`: not for a prompt that is on its way."""
    queue = state.queues.get(session_id)
    if queue is None:
        return
    moving = {one.prompt.id for one in (queue.in_flight, queue.uncertain) if one is not None}
    queue.prompts = [
        one for one in queue.prompts if one.id in moving or prompt_id not in (one.id, one.client_submit_id)
    ]
    if queue.failed_prompt_id == prompt_id:
        queue.failed_prompt_id = queue.failure_message = ""


def drain(state: EngineState, session_id: str, out: Outcome) -> None:
    """Send the head of the queue if everything allows it."""
    queue = state.queues.get(session_id)
    if queue is None:
        return
    if queue.barrier_turn_id:
        barrier = state.turn(session_id, queue.barrier_turn_id)
        if barrier is not None and barrier.settled:
            queue.barrier_turn_id = ""
    if decide(state, session_id, queue) == "send":
        prompt = queue.prompts[0]
        if prompt.guidance and availability(state, session_id) != ("blocked", "active_turn"):
            prompt.guidance, prompt.target_turn_id = False, ""  # its Turn is over: an ordinary prompt
        state.sends += 1
        _send(state, session_id, prompt, f"queue:send:{session_id}:{state.sends}", out, queue)
    if queue.idle and not queue.suspended:
        del state.queues[session_id]


def decide(state: EngineState, session_id: str, queue: QueueRecord) -> str:
    """`send`, or why not. The order of the questions is part of the contract (§2.5)."""
    if not queue.prompts:
        return "no_head"
    head = queue.prompts[0]
    settings = state.settings.get(session_id)
    available = availability(state, session_id)
    if queue.in_flight is not None:
        return "in_flight"
    if queue.uncertain is not None:
        return "uncertain_delivery"
    if queue.suspended:
        return "suspended"
    if head.id == queue.failed_prompt_id:
        return "failed_head"
    if settings is not None and settings.status in {"inFlight", "waitingForRuntime", "unknown", "failed"}:
        return "settings_update_pending"
    if head.guidance and available == ("blocked", "active_turn"):
        return "send"
    if queue.barrier_turn_id:
        return "barrier_pending"
    if available[0] != "available":
        return "unavailable"
    return "send"


def sent(state: EngineState, command: Command, result: CommandResult, out: Outcome) -> None:
    """The result of `queue/sendPrompt`."""
    session_id = command.agent_session_id
    queue = record(state, session_id)
    moving = queue.in_flight
    submit_record = state.submits.get(str(command.payload.get("clientSubmitId") or ""))
    if moving is None or moving.command_id != command.command_id:
        if command.command_id.startswith("submit:send:"):
            _settle_submit(submit_record, result, _turn_of(result, session_id))
        return
    queue.in_flight = None
    turn_id = _turn_of(result, session_id)
    if succeeded(result) and (turn_id or result.result.get("kind") == "goalControl"):
        queue.prompts = [one for one in queue.prompts if one.id != moving.prompt.id]
        queue.barrier_turn_id = turn_id
        queue.failed_prompt_id = queue.failure_message = ""
    elif result.outcome == "failed" and "agent.no_active_turn" in (result.error_code, result.error_reason):
        out.no_drain = True
        _reconcile(session_id, queue, command, out)
    elif result.outcome == "failed":
        queue.failed_prompt_id = moving.prompt.id
        queue.failure_message = result.error_message
    else:
        queue.failed_prompt_id = moving.prompt.id
        queue.uncertain = moving
        _reconcile(session_id, queue, command, out)
    _settle_submit(submit_record, result, turn_id)


def reconciled(state: EngineState, command: Command, result: CommandResult) -> None:
    """The queue's own reconcile came back: uncertainty ends."""
    queue = state.queues.get(command.agent_session_id)
    if queue is None or queue.reconcile_id != command.command_id:
        return
    queue.reconcile_id = ""
    uncertain, queue.uncertain = queue.uncertain, None
    if uncertain is not None and succeeded(result):
        queue.prompts = [one for one in queue.prompts if one.id != uncertain.prompt.id]
        queue.failed_prompt_id = ""


def delivered(state: EngineState, session_id: str, message: JsonObject) -> None:
    """A message that names its submit proves delivery: the prompt goes, its Turn becomes the barrier."""
    submit_id = str((message.get("payload") or {}).get("clientSubmitId") or "")
    turn_id = str(message.get("turnId") or "")
    if not submit_id or not turn_id:
        return
    known = state.submits.get(submit_id)
    if known is not None and known.status in {"requested", "accepted", "uncertain"}:
        known.turn_id = known.turn_id or turn_id
        known.status = "confirmed"
    queue = state.queues.get(session_id)
    if queue is not None and queue.uncertain is not None and queue.uncertain.prompt.client_submit_id == submit_id:
        queue.prompts = [one for one in queue.prompts if one.id != queue.uncertain.prompt.id]
        queue.uncertain = None
        queue.failed_prompt_id = ""
        queue.barrier_turn_id = turn_id


def expire_submit(state: EngineState, submit_id: str, now: int) -> None:
    """A submit's deadline: one that still waits in a queue gets another window."""
    known = state.submits.get(submit_id)
    if known is None:
        return
    queue = state.queues.get(known.session_id)
    if queue is not None and any(one.client_submit_id == submit_id for one in queue.prompts):
        known.expires_at = now + max(1, known.window)
        _schedule(state, known)
    elif known.status in {"accepted", "confirmed"}:
        del state.submits[submit_id]
    else:
        known.status = "failed"


def send_prepared(state: EngineState, session_id: str, ok: bool, message: str, out: Outcome) -> None:
    """The settings that a prompt needed are in force, or could not be set."""
    queue = record(state, session_id)
    moving = queue.in_flight
    if moving is None or moving.stage != "preparingSettings":
        return
    if ok:
        moving.stage = "sending"
        out.commands.append(_command(session_id, moving.prompt, moving.command_id))
        return
    queue.in_flight = None
    queue.failed_prompt_id, queue.failure_message = moving.prompt.id, message


def _acceptable(state: EngineState, session_id: str, submit_id: str, intent: JsonObject, routing: str) -> bool:
    if not session_id or not submit_id or session_id in state.deleted or submit_id in state.submits:
        return False
    if not (intent.get("content") or intent.get("runtimeContent")):
        return False
    if session_id not in state.sessions and routing == "immediate":
        return False
    queue = state.queues.get(session_id)
    if queue is None:
        return True
    waiting = [*queue.prompts, *(one.prompt for one in (queue.in_flight, queue.uncertain) if one is not None)]
    return all(one.client_submit_id != submit_id for one in waiting)


def _remember(state: EngineState, submit_id: str, session_id: str, intent: JsonObject, now: int) -> None:
    requested = _time(intent.get("requestedAtUnixMs"), now)
    expires = _time(intent.get("expiresAtUnixMs"), requested + 120_000)
    known = SubmitRecord(id=submit_id, session_id=session_id, expires_at=expires, window=expires - requested)
    state.submits[submit_id] = known
    _schedule(state, known)


def _schedule(state: EngineState, known: SubmitRecord) -> None:
    intent = {"type": "engine/intentExpired", "what": "submit", "id": known.id, "agentSessionId": known.session_id}
    state.expiries[f"submit:{known.id}"] = Expiry(known.expires_at, intent)


def _send(
    state: EngineState, session_id: str, prompt: QueuedPrompt, command_id: str, out: Outcome, queue: QueueRecord
) -> None:
    immediate = command_id.startswith("submit:send:")
    if prompt.settings_patch and not immediate:
        queue.in_flight = InFlight(command_id, prompt, "preparingSettings")
        out.follow_ups.append(
            {
                "type": "session/settingsPreconditionRequested",
                "agentSessionId": session_id,
                "commandId": f"prompt:settings:{command_id}",
                "settings": prompt.settings_patch,
            }
        )
        return
    if not immediate:
        queue.in_flight = InFlight(command_id, prompt)
    out.commands.append(_command(session_id, prompt, command_id))


def _command(session_id: str, prompt: QueuedPrompt, command_id: str) -> Command:
    payload = dict(prompt.body)
    payload["content"] = payload.get("runtimeContent") or payload.get("content") or []
    payload["clientSubmitId"] = prompt.client_submit_id
    payload["promptId"] = prompt.id
    if prompt.routing:
        payload["routing"] = prompt.routing
    if prompt.guidance:
        payload["guidance"] = True
    if prompt.target_turn_id:
        payload["targetTurnId"] = prompt.target_turn_id
    return Command(
        type="queue/sendPrompt",
        command_id=command_id,
        correlation_id=prompt.client_submit_id,
        agent_session_id=session_id,
        timeout_ms=_SEND_TIMEOUT_MS,
        payload=payload,
    )


def _reconcile(session_id: str, queue: QueueRecord, command: Command, out: Outcome) -> None:
    queue.reconcile_id = f"queue:reconcile:{command.command_id}"
    out.commands.append(
        Command(
            type="session/reconcile",
            command_id=queue.reconcile_id,
            agent_session_id=session_id,
            timeout_ms=_RECONCILE_TIMEOUT_MS,
            payload={"scope": "state_and_messages"},
        )
    )


def _turn_of(result: CommandResult, session_id: str) -> str:
    """The Turn that a valid send result names, or ""."""
    body = result.result
    turn, session, turn_id = body.get("turn"), body.get("session"), body.get("turnId")
    if not isinstance(turn, dict) or not isinstance(session, dict) or not isinstance(turn_id, str):
        return ""
    same = session.get("agentSessionId") == session_id and turn.get("id") == turn_id
    return turn_id if same else ""


def _settle_submit(known: SubmitRecord | None, result: CommandResult, turn_id: str) -> None:
    if known is None or known.status in {"confirmed", "failed"}:
        return
    if succeeded(result) and turn_id:
        known.status, known.turn_id = "accepted", turn_id
    elif result.outcome == "failed":
        known.status = "failed"
    else:
        known.status = "uncertain"


def _time(value: object, otherwise: int) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise
