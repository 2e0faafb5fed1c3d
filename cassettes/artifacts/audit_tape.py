"""The provider tape of a Cassette, verified in one pass (spec: provider-tape §4, §6, and "our additions").

Frames are read line by line; of each stream only an unfinished value is held.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from pybase64 import b64decode

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.clean_lines import clean_values
from cassettes.artifacts.protocol_stream import MalformedError, ValueStream, parse_values
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.policy import POLICY
from cassettes.core.records import present
from cassettes.core.tape import (
    FRAMES_FILE,
    KINDS,
    MANIFEST_FILE,
    PROJECTION_VERSION,
    TAPE_SCHEMA_VERSION,
    Frame,
    TapeConnection,
    TapeManifest,
    TapeStatistics,
    WireFrame,
    decode_frame_block,
    decode_frame_line,
)
from cassettes.providers import registry
from cassettes.providers.value_audit import Finding, audit_values

_INTEGER_LIMIT = 1 << 63
_STRICT = frozenset({"outbound", "stdout"})  # kinds whose bytes must be JSON values to the end
CAPTURE_ORIGINS = frozenset({"process-start", "attached-live-connection"})
_MESSAGES = {
    "credential_method": "The tape holds a call of a credential method.",
    "sensitive_field": "The tape holds a secret or an account identity.",
    "non_portable_path": "The tape holds a path of the recording machine.",
}
_HINT = "Record again with a projection that removes it; the tape must not be shared."


@dataclass(slots=True)
class TapeReport:
    """What the pass over the tape counted."""

    manifest: TapeManifest
    frame_count: int = 0
    duration_ms: int = 0
    last_chunk: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _rejected(code: str, message: str, file: str, *, line: int = 0, path: str = "", hint: str = "") -> CassetteRejected:
    return CassetteRejected(message, code=code, place=Place(file=file, line=line, path=path), hint=hint)


# ------------------------------------------------------------------------------------------------- manifest
def check_tape_manifest(manifest: TapeManifest) -> None:
    """The manifest alone: versions, status, connections (§4 rows 2-4, 6, 10)."""
    for name, value, wanted in (
        ("schemaVersion", manifest.schema_version, TAPE_SCHEMA_VERSION),
        ("projectionVersion", manifest.projection_version, PROJECTION_VERSION),
        ("status", manifest.status, "complete"),
    ):
        if value != wanted:
            raise CassetteRejected(
                "This tape cannot be replayed.",
                code="tape_unfinished" if name == "status" else "tape_version",
                place=Place(file=MANIFEST_FILE, path=f"$.{name}"),
                expected=wanted,
                found=value,
                hint="Only a finished, projected tape of this version can be used.",
            )
    ids: set[str] = set()
    keys: set[tuple[str, str, int]] = set()
    for index, connection in enumerate(manifest.connections):
        _check_connection(connection, f"$.connections[{index}]", ids, keys)


def _check_connection(connection: TapeConnection, path: str, ids: set[str], keys: set[tuple[str, str, int]]) -> None:
    def refuse(code: str, message: str, member: str) -> CassetteRejected:
        return _rejected(code, message, MANIFEST_FILE, path=f"{path}.{member}")

    if not present(connection.connection_id):
        raise refuse("tape_connection_invalid", "A connection has no id.", "connectionId")
    if connection.connection_id in ids:
        raise refuse("tape_connection_invalid", "A connection is listed twice.", "connectionId")
    ids.add(connection.connection_id)
    provider = registry.find(connection.provider)
    if provider is None:
        raise refuse("tape_provider_unknown", "No adapter is registered for this provider.", "provider")
    if connection.capture_origin not in CAPTURE_ORIGINS:
        raise refuse("tape_connection_invalid", "The capture origin is unknown.", "captureOrigin")
    if connection.launch_ordinal < 1:
        raise refuse("tape_connection_invalid", "The launch ordinal must be at least 1.", "launchOrdinal")
    key = (connection.agent_session_id.strip(), provider.id, connection.launch_ordinal)
    if key in keys:
        raise refuse("tape_connection_invalid", "Two connections are the same launch.", "launchOrdinal")
    keys.add(key)


# ------------------------------------------------------------------------------------------------- streams
class _Stream:
    """The protocol bytes of one connection and kind."""

    def __init__(self, connection_id: str, kind: str, credential_methods: Collection[str]) -> None:
        self.connection_id = connection_id
        self.kind = kind
        self.strict = kind in _STRICT
        self.methods = credential_methods
        self.values = ValueStream()
        self.count = 0
        self.bytes = 0
        self.broken = False
        self.suspicion: tuple[Finding, int] | None = None
        self.line_rest = b""

    def feed(self, data: bytes, line: int) -> None:
        """Audit what is complete now. Raises `CassetteRejected` with the line of the completing frame."""
        self.bytes += len(data)
        if self.bytes > POLICY.limits.max_provider_tape_bytes:
            raise _rejected("tape_too_large", "A stream of the tape is too large.", FRAMES_FILE, line=line)
        if not self.strict:
            self._scan_lines(data, line)
        if self.broken:
            return
        self._take(self.values.feed(data), line)

    def pass_over(self, taken: int, values: int, lines: bytes, rest: bytes) -> None:
        """Move on over bytes whose lines are known to be clean."""
        self.bytes += taken
        self.count += values
        self.values.pass_over(lines, rest)

    def finish(self, line: int) -> None:
        """Audit the rest; a strict stream must have been a non-empty sequence of JSON values."""
        if not self.strict and self.line_rest:
            self._scan_lines(b"\n", line)
        if self.broken:
            return
        self._take(self.values.finish(), line)
        if self.broken:
            return
        if self.count == 0:
            if self.strict:
                raise self._malformed(line)
            return
        if self.suspicion is not None:
            finding, where = self.suspicion
            raise _finding(finding, where, self.kind)

    def _take(self, values: Iterator[Any], line: int) -> None:
        try:
            for value in values:
                self.count += 1
                finding = audit_values((value,), self.methods)
                if finding is not None:
                    if self.strict:
                        raise _finding(finding, line, self.kind)
                    self.suspicion = self.suspicion or (finding, line)
        except MalformedError:
            if self.strict:
                raise self._malformed(line) from None
            self.broken = True
            self.values = ValueStream()

    def _scan_lines(self, data: bytes, line: int) -> None:
        """Audit the JSON lines of a mixed log as well (trap T12)."""
        *complete, self.line_rest = (self.line_rest + data).split(b"\n")
        for text in complete:
            audit_text(text, self.methods, line, self.kind)

    def _malformed(self, line: int) -> CassetteRejected:
        return _rejected(
            "tape_protocol_json_invalid",
            f"The {self.kind} of {self.connection_id} is not a sequence of JSON values.",
            FRAMES_FILE,
            line=line,
            hint="Plain log lines belong to stderr; such a recording cannot be published.",
        )


def _finding(finding: Finding, line: int, kind: str) -> CassetteRejected:
    return _rejected(
        f"tape_{finding.kind}",
        f"{_MESSAGES[finding.kind]} ({kind})",
        FRAMES_FILE,
        line=line,
        path=finding.path,
        hint=_HINT,
    )


def audit_text(data: bytes, credential_methods: Collection[str], line: int, kind: str) -> None:
    """Audit text that may be JSON: text that is not passes, JSON must hold no finding."""
    if not data.strip().startswith((b"{", b"[")):
        return
    try:
        values = parse_values(data)
    except MalformedError:
        return
    finding = audit_values(values, credential_methods)
    if finding is not None:
        raise _finding(finding, line, kind)


# ------------------------------------------------------------------------------------------------- the pass
class _Group:
    """What the frames of one block bring for one stream."""

    def __init__(self, stream: _Stream) -> None:
        self.stream = stream
        self.data: list[str] = []  # base64
        self.stored = 0
        self.sizes: list[int] = []
        self.payload_bytes = 0
        self.values = 0
        self.lines = (b"", b"")

    def is_clean(self) -> bool:
        """Decode, and prove that there is nothing to report. Changes nothing but this group."""
        stream = self.stream
        try:
            payloads = [b64decode(text, None, True) for text in self.data]
        except ValueError:
            return False
        self.sizes = list(map(len, payloads))
        self.payload_bytes = sum(self.sizes)
        limits = POLICY.limits
        if max(self.sizes) > limits.max_provider_payload_bytes:
            return False
        if stream.broken or stream.bytes + self.payload_bytes > limits.max_provider_tape_bytes:
            return False
        lines = stream.values.lines_with(b"".join(payloads))
        values = clean_values(lines[0], stream.methods) if lines is not None else None
        if lines is None or values is None:
            return False
        self.lines, self.values = lines, values
        return True


class TapeAudit:
    """One pass over `frames.jsonl`."""

    def __init__(self, folder: CassetteFolder, manifest: TapeManifest) -> None:
        self._folder = folder
        self._manifest = manifest
        self._methods = {
            one.connection_id: registry.provider(one.provider).credential_methods for one in manifest.connections
        }
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._statistics = TapeStatistics()
        self._report = TapeReport(manifest)

    def run(self, *, frames_sha256: str = "") -> TapeReport:
        """Check every frame and stream, then the counts. `frames_sha256` is the digest of the file on disk."""
        line = 0
        for block in self._folder.frame_blocks():
            done = self._take_block(block, line)
            if done:
                line += done
                continue
            for text in io.BytesIO(block):
                line += 1
                frame = decode_frame_line(text, line)
                self._check(frame, line)
                self._statistics.add(frame, len(text))
                self._audit(frame, line)
        for stream in self._streams.values():
            stream.finish(line)
        self._totals(frames_sha256, line)
        return self._report

    def _take_block(self, block: bytes, line: int) -> int:
        """Take many lines at once when nothing about them needs a closer look; gives how many, else 0."""
        frames = decode_frame_block(block)
        if not frames or not self._in_sequence(frames, line):
            return 0
        groups = self._grouped(frames, block)
        if not all(group.is_clean() for group in groups.values()):
            return 0
        for (connection, kind), group in groups.items():
            group.stream.pass_over(group.payload_bytes, group.values, *group.lines)
            self._statistics.add_many(kind, group.sizes, group.stored)
            self._report.last_chunk[connection] = self._report.last_chunk.get(connection, 0) + len(group.data)
        self._report.duration_ms = max(self._report.duration_ms, *(frame.elapsed_ms for frame in frames))
        return len(frames)

    def _in_sequence(self, frames: list[WireFrame], line: int) -> bool:
        """Whether both sequences hold and the frames only carry protocol bytes."""
        if [frame.global_seq for frame in frames] != list(range(line + 1, line + 1 + len(frames))):
            return False
        elapsed = [frame.elapsed_ms for frame in frames]
        if min(elapsed) < 0 or max(elapsed) >= _INTEGER_LIMIT:
            return False
        if not {frame.kind for frame in frames} <= _STRICT or any(frame.message for frame in frames):
            return False
        connections = {frame.connection_id for frame in frames}
        if not connections <= self._methods.keys():
            return False
        for connection in connections:
            first = self._report.last_chunk.get(connection, 0) + 1
            taken = [frame.chunk_seq for frame in frames if frame.connection_id == connection]
            if taken != list(range(first, first + len(taken))):
                return False
        return True

    def _grouped(self, frames: list[WireFrame], block: bytes) -> dict[tuple[str, str], _Group]:
        """The frames of a block by stream, with the length of their lines."""
        keys = {(frame.connection_id, frame.kind) for frame in frames}
        groups = {key: _Group(self._stream(key)) for key in keys}
        if len(keys) == 1:
            (group,) = groups.values()
            group.data, group.stored = [frame.data for frame in frames], len(block)
            return groups
        for frame, text in zip(frames, io.BytesIO(block), strict=True):
            group = groups[frame.connection_id, frame.kind]
            group.data.append(frame.data)
            group.stored += len(text)
        return groups

    def _stream(self, key: tuple[str, str]) -> _Stream:
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream(*key, self._methods[key[0]])
        return stream

    def _check(self, frame: Frame, line: int) -> None:
        def refuse(code: str, message: str, member: str) -> CassetteRejected:
            return _rejected(code, message, FRAMES_FILE, line=line, path=f"$.{member}")

        if frame.connection_id not in self._methods:
            raise refuse("tape_connection_unknown", "A frame belongs to an unlisted connection.", "connectionId")
        if frame.kind not in KINDS:
            raise refuse("tape_frame_invalid", "The frame kind is unknown.", "kind")
        if frame.global_seq != line:
            raise refuse("tape_sequence_gap", "The global sequence is not the line number.", "globalSeq")
        previous = self._report.last_chunk.get(frame.connection_id, 0)
        if frame.chunk_seq != previous + 1:
            raise refuse("tape_sequence_gap", "The chunk sequence of the connection has a gap.", "chunkSeq")
        self._report.last_chunk[frame.connection_id] = frame.chunk_seq
        if frame.kind == "exit" and frame.exit_code is None:
            raise refuse("tape_frame_invalid", "An exit frame has no exit code.", "exitCode")
        if frame.elapsed_ms < 0:
            raise refuse("tape_frame_invalid", "The time is negative.", "elapsedMs")
        if frame.payload_bytes > POLICY.limits.max_provider_payload_bytes:
            raise refuse("tape_frame_too_large", "The payload of a frame is too large.", "data")
        self._report.duration_ms = max(self._report.duration_ms, frame.elapsed_ms)

    def _audit(self, frame: Frame, line: int) -> None:
        methods = self._methods[frame.connection_id]
        if frame.message:
            for text in (frame.message, *frame.message.splitlines()):
                audit_text(text.encode("utf-8", "replace"), methods, line, "message")
        self._stream((frame.connection_id, frame.kind)).feed(frame.data, line)

    def _totals(self, frames_sha256: str, lines: int) -> None:
        manifest = self._manifest
        if not manifest.frames_sha256 or (frames_sha256 and manifest.frames_sha256 != frames_sha256):
            raise CassetteRejected(
                "The tape is not the one that the manifest describes.",
                code="tape_hash_mismatch",
                place=Place(file=MANIFEST_FILE, path="$.framesSha256"),
                expected=manifest.frames_sha256 or "a digest",
                found=frames_sha256,
            )
        if lines != manifest.frame_count:
            raise CassetteRejected(
                "The tape has another number of frames than the manifest says.",
                code="tape_frame_count",
                place=Place(file=MANIFEST_FILE, path="$.frameCount"),
                expected=manifest.frame_count,
                found=lines,
            )
        self._report.frame_count = lines
        self._report.notes += [
            f"provider/manifest.json: {name} differs from the frames" for name in self._statistics.differences(manifest)
        ]
        limits = POLICY.limits
        if (manifest.limits.max_frame_bytes, manifest.limits.max_stored_bytes) != (
            limits.max_provider_payload_bytes,
            limits.max_provider_tape_bytes,
        ):
            self._report.notes.append("provider/manifest.json: limits differ from the policy")
