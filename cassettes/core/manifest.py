"""`cassette.json`, the manifest of a Cassette (cassette-v7 §4)."""

from __future__ import annotations

import hashlib
from typing import ClassVar

import msgspec

from cassettes.core import jsontext
from cassettes.core.errors import CassetteRejected, InputRejected, Place
from cassettes.core.policy import POLICY
from cassettes.core.records import Record, indented_bytes, read_record

SCHEMA_VERSION = 7
STATE_FORMAT = "tutti.agent-session-replay-state.v1"
MODES = frozenset({"create-session", "continue-session"})
MANIFEST_FILE = POLICY.files.cassette_manifest.path
MAX_NAME = 120
_SCOPE = frozenset({"scopeid", "workspaceid"})


class ComposerDefaults(Record):
    """Settings the recorded composer had; all present and trimmed."""

    model: str = ""
    permission_mode_id: str = ""
    reasoning_effort: str = ""
    speed: str = ""


class ReplayPrerequisites(Record):
    """What a replay needs to be given."""

    composer_defaults: ComposerDefaults = msgspec.field(default_factory=ComposerDefaults)


class InventoryFile(Record):
    """One file of the inventory."""

    path: str = ""
    role: str = ""
    size_bytes: int = 0
    sha256: str = ""


class Redaction(Record):
    """Says that a Cassette is the redacted copy of another one. Ours; other readers ignore it (§3.2)."""

    of_cassette_id: str = ""
    secrets: int = 0


class CassetteManifest(Record):
    """The manifest, members in the order of the spec; `redaction` is ours, and only a redacted copy has it."""

    omit_empty: ClassVar[frozenset[str]] = frozenset({"redaction"})
    schema_version: int = 0
    state_format: str = ""
    id: str = ""
    name: str = ""
    source_recording_id: str = ""
    agent_target_id: str = ""
    replay_prerequisites: ReplayPrerequisites = msgspec.field(default_factory=ReplayPrerequisites)
    root_agent_session_id: str = ""
    mode: str = ""
    total_bytes: int = 0
    max_total_bytes: int = 0
    files: list[InventoryFile] = msgspec.field(default_factory=list)
    created_at_unix_ms: int = 0
    redaction: Redaction | None = None


def decode_manifest(data: bytes) -> CassetteManifest:
    """The bytes of `cassette.json` as a record. Top-level scope members are refused in any letter case (H2)."""
    value = jsontext.decode_strict(data, file=MANIFEST_FILE)
    check_scope(value, file=MANIFEST_FILE)
    return read_record(CassetteManifest, value, file=MANIFEST_FILE)


def check_scope(value: object, *, file: str, line: int = 0) -> None:
    """Refuse a top-level `scopeId` or `workspaceId`, whatever its value."""
    if not isinstance(value, dict):
        return
    for name in value:
        if name.lower() in _SCOPE:
            raise CassetteRejected(
                f"a Cassette must not name a scope: {name}",
                code="scope_member_forbidden",
                place=Place(file, line, f"$.{name}"),
                hint="remove the member",
            )


def encode_manifest(manifest: CassetteManifest) -> bytes:
    """The exact bytes of `cassette.json`."""
    return indented_bytes(manifest)


def manifest_hash(data: bytes) -> str:
    """Lower-case SHA-256 of the bytes of `cassette.json`."""
    return hashlib.sha256(data).hexdigest()


def check_name(name: str) -> str:
    """A valid Cassette name, trimmed: 1–120 characters. `invalid_name` otherwise."""
    trimmed = name.strip()
    if not 1 <= len(trimmed) <= MAX_NAME:
        raise InputRejected(
            f"a name has 1 to {MAX_NAME} characters",
            code="invalid_name",
            found=f"{len(trimmed)} characters",
            hint="choose another name",
        )
    return trimmed


def check_id(cassette_id: str, *, path: str = "$.id") -> str:
    """An id that is one safe path segment (H1)."""
    trimmed = cassette_id.strip()
    unsafe = trimmed in {"", ".", ".."} or any(mark in trimmed for mark in "/\\\0") or len(trimmed.encode()) > 200
    if unsafe or trimmed != cassette_id or not trimmed.isprintable() or trimmed.startswith("."):
        raise CassetteRejected(
            "the id is not one safe path segment",
            code="manifest_id_unsafe",
            place=Place(MANIFEST_FILE, 0, path),
            found=repr(cassette_id),
        )
    return trimmed
