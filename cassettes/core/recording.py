"""One capture task: its record, its statuses and which follow which (spec: cassette-v7 §13.11, §14)."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from cassettes.core.errors import RecordingError
from cassettes.core.manifest import ReplayPrerequisites

PREPARING, READY, RECORDING, FINALIZING = "preparing", "ready", "recording", "finalizing"
COMPLETE, FAILED, CANCELED, INCOMPLETE = "complete", "failed", "canceled", "incomplete"
ACTIVE = frozenset({PREPARING, READY, RECORDING, FINALIZING})
CREATE_SESSION, CONTINUE_SESSION = "create-session", "continue-session"

_ENDINGS = frozenset({FAILED, CANCELED, INCOMPLETE})
_NEXT: dict[str, frozenset[str]] = {
    PREPARING: _ENDINGS | {READY, RECORDING},
    READY: _ENDINGS | {RECORDING},
    RECORDING: _ENDINGS | {FINALIZING},
    FINALIZING: _ENDINGS | {COMPLETE},
}


class Recording(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A Recording row. Times are Unix milliseconds; 0 and "" mean not set."""

    id: str
    name: str
    scope_id: str
    agent_target_id: str
    mode: str
    replay_prerequisites: ReplayPrerequisites = msgspec.field(default_factory=ReplayPrerequisites)
    status: str = PREPARING
    cassette_id: str = ""
    root_agent_session_id: str = ""
    error_code: str = ""
    error_message: str = ""
    created_at_unix_ms: int = 0
    recording_at_unix_ms: int = 0
    stopped_at_unix_ms: int = 0
    updated_at_unix_ms: int = 0

    @property
    def active(self) -> bool:
        """Does it still hold its scope?"""
        return self.status in ACTIVE


class CassetteRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The catalogue's row of a published Cassette; everything in it can be read from the artifact again."""

    id: str
    name: str
    source_recording_id: str
    agent_target_id: str
    root_agent_session_id: str
    mode: str
    total_bytes: int
    manifest_sha256: str
    created_at_unix_ms: int


def default_name(created_at_unix_ms: int) -> str:
    """The name of a Recording that nobody named: its creation time in UTC, `2026-01-31T12:34:56.789Z`."""
    moment = datetime.fromtimestamp(created_at_unix_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{created_at_unix_ms % 1000:03d}Z"


def moved(
    recording: Recording,
    status: str,
    now: int,
    *,
    root_agent_session_id: str = "",
    cassette_id: str = "",
    error_code: str = "",
    error_message: str = "",
) -> Recording:
    """The Recording in its next status; the same status again changes nothing.

    `recording` needs a root session, `complete` a Cassette id, `failed` and `incomplete` a code and a message; every
    other move clears the error. Raises `RecordingError` (`recording_transition_failed`).
    """
    if status == recording.status:
        return recording
    root = root_agent_session_id or recording.root_agent_session_id
    cassette = cassette_id or recording.cassette_id
    with_error = status in (FAILED, INCOMPLETE)
    missing = ""
    if status not in _NEXT.get(recording.status, frozenset()) or _wrong_way(recording, status):
        missing = "that status cannot follow"
    elif status == RECORDING and not root:
        missing = "the root session is not known"
    elif status == COMPLETE and not cassette:
        missing = "there is no Cassette"
    elif with_error and not (error_code and error_message):
        missing = "the reason is missing"
    if missing:
        raise RecordingError(
            f"The Recording cannot go from {recording.status} to {status}: {missing}.",
            code="recording_transition_failed",
        )
    stops = status != READY and status != RECORDING and not recording.stopped_at_unix_ms
    return msgspec.structs.replace(
        recording,
        status=status,
        root_agent_session_id=root,
        cassette_id=cassette,
        error_code=error_code if with_error else "",
        error_message=error_message if with_error else "",
        recording_at_unix_ms=now if status == RECORDING else recording.recording_at_unix_ms,
        stopped_at_unix_ms=now if stops else recording.stopped_at_unix_ms,
        updated_at_unix_ms=now,
    )


def _wrong_way(recording: Recording, status: str) -> bool:
    """From `preparing` a new session becomes ready first, a continued one records at once."""
    if recording.status != PREPARING or status not in (READY, RECORDING):
        return False
    return (status == READY) != (recording.mode == CREATE_SESSION)
