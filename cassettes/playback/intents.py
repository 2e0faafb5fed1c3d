"""Recorded payloads made live: folder token, composer defaults, times, command ids (replay-runtime §4.2)."""

from __future__ import annotations

from typing import Any, TypeGuard

from cassettes.core.errors import Place, ReplayFailed
from cassettes.core.manifest import ComposerDefaults
from cassettes.engine.contract import COMMAND_ID_INTENTS
from cassettes.playback.effects import EffectVerifier
from cassettes.playback.rebase import Rebased

JsonObject = dict[str, Any]
CWD_TOKEN = "${REPLAY_CWD}"
_STARTS_SESSION = {"activation/requested", "session/activate", "session.create"}
_EXPIRY_WINDOW = {"activation/requested", "submit/requested", "plan/feedbackRequested"}
_AWAITS_TURN = {"session/cancelRequested", "session/stopRequested"}
_SUPPLIED = ("agentSessionId", "type", "workspaceId")


def localise(event_type: str, payload: JsonObject, replay_root: str, defaults: ComposerDefaults | None) -> JsonObject:
    """Resolve the folder token in its structural members, and apply the manifest's composer defaults."""
    if event_type not in _STARTS_SESSION:
        return payload
    result = dict(payload)
    if isinstance(result.get("cwd"), str):
        result["cwd"] = _resolve(result["cwd"], replay_root)
    if isinstance(result.get("railSectionKey"), str):
        result["railSectionKey"] = _resolve_key(result["railSectionKey"], replay_root)
    rail = result.get("railPlacement")
    if isinstance(rail, dict):
        placed = dict(rail)
        if isinstance(placed.get("projectPath"), str):
            placed["projectPath"] = _resolve(placed["projectPath"], replay_root)
        if isinstance(placed.get("sectionKey"), str):
            placed["sectionKey"] = _resolve_key(placed["sectionKey"], replay_root)
        result["railPlacement"] = placed
    if defaults is not None:
        settings = result.get("settings")
        result["settings"] = {**(settings if isinstance(settings, dict) else {}), **_settings(defaults)}
    return result


def materialise(event: Rebased, cassette_id: str, now: int, effects: EffectVerifier) -> JsonObject:
    """The intent to dispatch for a recorded intent event."""
    kind, payload = event.event.type, event.payload
    for member in _SUPPLIED:
        if member in payload:
            raise ReplayFailed(
                f"the payload of an intent must not hold {member}",
                code="intent_payload_invalid",
                place=Place("activity-events.jsonl", event.event.sequence, f"$.payload.{member}"),
            )
    intent: JsonObject = {**payload, "type": kind, "agentSessionId": event.session_id}
    _rebase_times(kind, intent, event.event.occurred_at_unix_ms, now)
    _command_id(event, intent, cassette_id, effects)
    return intent


def _rebase_times(kind: str, intent: JsonObject, occurred: int, now: int) -> None:
    requested, expires = intent.get("requestedAtUnixMs"), intent.get("expiresAtUnixMs")
    if kind in _EXPIRY_WINDOW and _is_time(requested) and _is_time(expires):
        intent["requestedAtUnixMs"] = now
        intent["expiresAtUnixMs"] = now + max(0, expires - requested)
    awaiting = intent.get("awaitingTurnExpiresAtUnixMs")
    if kind in _AWAITS_TURN and _is_time(awaiting):
        intent["awaitingTurnExpiresAtUnixMs"] = now + max(1, awaiting - occurred)


def _command_id(event: Rebased, intent: JsonObject, cassette_id: str, effects: EffectVerifier) -> None:
    sequence = event.event.sequence
    if event.event.type in COMMAND_ID_INTENTS:
        command_id = f"replay:{cassette_id}:{event.event.event_id}"
        intent["commandId"] = command_id
        effects.bind(event.event.correlation_id, command_id, sequence)
    elif event.event.type == "queue/sendNowRequested" and intent.get("cancelCommandId"):
        effects.bind(event.event.correlation_id, str(intent["cancelCommandId"]), sequence)
    elif event.event.type == "submit/requested" and intent.get("routing") == "send_now":
        effects.bind(event.event.correlation_id, f"submit:cancel:{intent.get('clientSubmitId', '')}", sequence)


def _is_time(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _settings(defaults: ComposerDefaults) -> JsonObject:
    return {
        "model": defaults.model,
        "permissionModeId": defaults.permission_mode_id,
        "reasoningEffort": defaults.reasoning_effort,
        "speed": defaults.speed,
    }


def _resolve(path: str, root: str) -> str:
    if path == CWD_TOKEN:
        return root
    if path.startswith(CWD_TOKEN + "/"):
        return f"{root}/{path[len(CWD_TOKEN) + 1 :]}"
    return path


def _resolve_key(key: str, root: str) -> str:
    return "project:" + _resolve(key[len("project:") :], root) if key.startswith("project:") else key
