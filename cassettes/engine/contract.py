"""The contract of the engine: replayable effects, their stable fields, continuations (replay-runtime §2-§5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cassettes.engine.ports import Command

STABLE_FIELDS: dict[str, frozenset[str]] = {
    "session/activate": frozenset(
        [
            "agentTargetId",
            "capabilityRefs",
            "clientSubmitId",
            "cwd",
            "initialContent",
            "initialDisplayPrompt",
            "initialGoalControl",
            "initialTuttiModeActivation",
            "mode",
            "railPlacement",
            "settings",
            "submitDiagnostics",
            "title",
            "visible",
        ]
    ),
    "queue/sendPrompt": frozenset(
        [
            "capabilityRefs",
            "clientSubmitId",
            "content",
            "displayPrompt",
            "guidance",
            "promptId",
            "routing",
            "runtimeContent",
            "settings",
        ]
    ),
    "turn/cancel": frozenset({"turnId"}),
    "session/updateSettings": frozenset({"settings"}),
    "interaction/respond": frozenset(["action", "optionId", "payload", "requestId", "turnId"]),
    "plan/submitDecision": frozenset(["action", "idempotencyKey", "payload", "promptKind", "requestId", "turnId"]),
    "goal/control": frozenset(["action", "clientSubmitId", "objective"]),
}
"""Fields of an effect that a replay compares (replay-runtime §5)."""

REPLAYABLE_EFFECTS = frozenset(STABLE_FIELDS)

COMMAND_ID_INTENTS = frozenset(
    {
        "goal/controlRequested",
        "interaction/responseRequested",
        "plan/decisionRequested",
        "session/cancelRequested",
        "session/settingsUpdateRequested",
        "session/stopRequested",
    }
)
"""Intents whose command id a replay supplies (replay-runtime §4.2)."""

_INTERNAL_SETTINGS = ("activation-settings:", "prompt:settings:")


def is_engine_internal(command: Command) -> bool:
    """Is the command a continuation that its cause makes again by itself? It has no effect event (§2.4)."""
    return command.type == "session/updateSettings" and command.command_id.startswith(_INTERNAL_SETTINGS)


def scoped_key(scope: str, entity: str) -> str:
    """`<length of scope>:<scope><entity>`, trimmed; the length counts UTF-16 code units (replay-runtime §2.2)."""
    scope, entity = scope.strip(), entity.strip()
    return f"{len(scope.encode('utf-16-le')) // 2}:{scope}{entity}"


def interaction_key(session_id: str, turn_id: str, request_id: str) -> str:
    """Key of an Interaction or plan; also the correlation id of its commands."""
    return scoped_key(session_id, scoped_key(turn_id, request_id))
