"""Turns what the engine does into activity events (replay-runtime §3, recording.md "Sealing")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from cassettes.core.activity import CONTRACT, ActivityEvent
from cassettes.core.errors import RecordingError
from cassettes.core.manifest import SCHEMA_VERSION
from cassettes.providers.ports import IdSource

if TYPE_CHECKING:
    from cassettes.engine.engine import Command, CommandResult

JsonObject = dict[str, Any]
Accept = Callable[[ActivityEvent], None]

_COMMON = {"agentSessionId", "commandId", "correlationId", "type", "workspaceId"}
_CORRELATION_KEYS: dict[str, tuple[str, ...]] = {
    "activation/requested": ("clientSubmitId", "requestId"),
    "goal/controlRequested": ("clientSubmitId", "commandId"),
    "interaction/responseRequested": ("commandId", "requestId"),
    "plan/decisionRequested": ("idempotencyKey", "commandId", "requestId"),
    "plan/feedbackRequested": ("clientSubmitId", "requestId"),
    "queue/removed": ("promptId",),
    "queue/sendNowRequested": ("promptId",),
    "session/cancelRequested": ("commandId",),
    "session/stopRequested": ("commandId",),
    "session/settingsUpdateRequested": ("commandId",),
    "submit/requested": ("clientSubmitId",),
    "submit/canceled": ("clientSubmitId",),
}
_REPLAYABLE = frozenset(effect for intent in CONTRACT.intents.values() for effect in intent.effects)
_INTERNAL_SETTINGS = ("activation-settings:", "prompt:settings:")
_BULKY_RESULT = {"session", "turn", "message"}  # rows of this machine; a result is never compared (§5)


class Defect(msgspec.Struct, frozen=True):
    """Why a recording cannot be sealed: `uncorrelated-command`, `disallowed-effect` or `unsettled-command`."""

    kind: str
    command: str
    correlation_id: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.command}" + (f" ({self.correlation_id})" if self.correlation_id else "")


class ActivityRecorder:
    """Observes intents, commands and results; hands each event to `accept`, which refuses or stores it."""

    def __init__(self, now: Callable[[], int], ids: IdSource, accept: Accept) -> None:
        self.defects: list[Defect] = []
        self._now = now
        self._ids = ids
        self._accept = accept
        self._causes: dict[str, list[ActivityEvent]] = {}  # correlation candidate → intents, oldest first
        self._running: dict[str, ActivityEvent] = {}  # command id → its causing intent

    def on_intent(self, intent: JsonObject) -> None:
        """A replayable intent becomes an event; observations and the engine's own intents do not."""
        kind = str(intent.get("type", "")).strip()
        if CONTRACT.intent(kind) is None:
            return
        event = ActivityEvent(
            schema_version=SCHEMA_VERSION,
            kind="intent",
            type=kind,
            event_id=self._ids.new("event"),
            correlation_id=_first_present(intent, _CORRELATION_KEYS.get(kind, ())),
            agent_session_id=str(intent.get("agentSessionId") or ""),
            payload={name: value for name, value in intent.items() if name not in _COMMON},
            occurred_at_unix_ms=self._now(),
        )
        self._accept(event)
        for candidate in candidates(intent):
            self._causes.setdefault(candidate, []).append(event)

    def on_command(self, command: Command) -> None:
        """Find the intent that a replayable command belongs to."""
        if command.type not in _REPLAYABLE or _is_internal(command):
            return
        causes = self._causes.get(command.correlation_id, []) + self._causes.get(command.command_id, [])
        if not causes:
            self.defects.append(Defect("uncorrelated-command", command.type, command.correlation_id))
            return
        for cause in reversed(causes):
            contract = CONTRACT.intent(cause.type)
            if contract is not None and command.type in contract.effects:
                self._running[command.command_id] = cause
                return
        self.defects.append(Defect("disallowed-effect", command.type, command.correlation_id))

    def on_command_result(self, command: Command, result: CommandResult) -> None:
        """The result makes the effect event."""
        cause = self._running.pop(command.command_id, None)
        if cause is None:
            return
        payload: JsonObject = {name: value for name, value in command.payload.items() if name not in _COMMON}
        payload["outcome"] = result.outcome
        for name, value in (
            ("errorCode", result.error_code),
            ("errorReason", result.error_reason),
            ("errorMessage", result.error_message),
        ):
            if value:
                payload[name] = value
        kept = {name: value for name, value in (result.result or {}).items() if name not in _BULKY_RESULT}
        if kept:
            payload["result"] = kept
        self._accept(
            ActivityEvent(
                schema_version=SCHEMA_VERSION,
                kind="effect",
                type=command.type,
                event_id=self._ids.new("event"),
                correlation_id=cause.correlation_id or command.correlation_id,
                caused_by_event_id=cause.event_id,
                agent_session_id=command.agent_session_id,
                payload=payload,
                occurred_at_unix_ms=self._now(),
            )
        )

    def seal(self) -> None:
        """Refuse completion while a command is unexplained or waits for its result; every one is named."""
        waiting = [Defect("unsettled-command", cause.type, cause.correlation_id) for cause in self._running.values()]
        defects = [*self.defects, *waiting]
        if defects:
            raise RecordingError(
                "The recording has defects: " + "; ".join(str(defect) for defect in defects),
                code="activity_timeline_incomplete",
            )


def candidates(intent: JsonObject) -> list[str]:
    """Every id by which a command may be attributed to `intent`."""
    kind = str(intent.get("type", "")).strip()
    found = [str(intent[name]) for name in _CORRELATION_KEYS.get(kind, ()) if intent.get(name)]
    prompt = intent.get("prompt")
    if kind == "queue/enqueued" and isinstance(prompt, dict):
        found += [str(prompt[name]) for name in ("clientSubmitId", "id") if prompt.get(name)]
    elif kind == "queue/sendNowRequested" and intent.get("cancelCommandId"):
        found.append(str(intent["cancelCommandId"]))
    elif kind == "submit/requested" and intent.get("routing") == "send_now":
        found.append(f"submit:cancel:{intent.get('clientSubmitId')}")
    return list(dict.fromkeys(found))


def _first_present(intent: JsonObject, names: tuple[str, ...]) -> str:
    for name in names:
        value = intent.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _is_internal(command: Command) -> bool:
    return command.type == "session/updateSettings" and command.command_id.startswith(_INTERNAL_SETTINGS)
