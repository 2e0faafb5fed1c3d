"""Writes the provider tape while a session runs (provider-tape §5)."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from cassettes.core.errors import CassetteRejected, Place, RecordingError
from cassettes.core.policy import POLICY
from cassettes.core.tape import (
    PROJECTION_VERSION,
    TAPE_SCHEMA_VERSION,
    Frame,
    TapeConnection,
    TapeLimits,
    TapeManifest,
    TapeStatistics,
    encode_frame_line,
    encode_manifest,
    reanchor,
)
from cassettes.providers import registry
from cassettes.providers.projection import TapeProjection
from cassettes.session.ports import Launch

MAX_PAYLOAD = POLICY.limits.max_provider_payload_bytes
MAX_STORED = POLICY.limits.max_provider_tape_bytes


class _Entry:
    """One chunk on its way to the file."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.ready = False


class Capture:
    """The recording of one connection. Times are those of the tape's clock, from its start."""

    def __init__(self, tape: Tape, record: TapeConnection, projection: TapeProjection, started: int) -> None:
        self.record = record
        self.projection = projection
        self.started = started
        self.chunk_seq = 0
        self.open: list[_Entry] = []  # stdout chunks of a message that is not complete yet
        self.detached = False
        self._tape = tape

    @property
    def connection_id(self) -> str:
        return self.record.connection_id

    def append(self, kind: str, data: bytes = b"", *, message: str = "", exit_code: int | None = None) -> int:
        """Record one chunk; returns its chunk sequence. Nothing is recorded after detaching (returns 0)."""
        if self.detached:
            return 0
        return self._tape.append(self, kind, data, message, exit_code)


class Tape:
    """A tape being written: `frames.jsonl` and its manifest below `folder`, truncated at the start."""

    def __init__(self, folder: Path, now: Callable[[], int]) -> None:
        self._folder = folder
        self._now = now
        folder.mkdir(parents=True, exist_ok=True)
        self._frames: BinaryIO = (folder / "frames.jsonl").open("wb")
        self._digest = hashlib.sha256()
        self._statistics = TapeStatistics()
        self._queue: deque[_Entry] = deque()
        self._global_seq = 0
        self._captures: list[Capture] = []
        self._closed = False
        self.manifest = TapeManifest(
            schema_version=TAPE_SCHEMA_VERSION,
            projection_version=PROJECTION_VERSION,
            status="incomplete",
            limits=TapeLimits(max_frame_bytes=MAX_PAYLOAD, max_stored_bytes=MAX_STORED),
        )
        self._write_manifest()

    @property
    def captures(self) -> list[Capture]:
        return self._captures

    def connect(self, launch: Launch, origin: str) -> Capture:
        """Begin the recording of a connection (§5.2)."""
        self._require_open()
        try:
            provider = registry.provider(launch.provider)
        except CassetteRejected as error:
            raise RecordingError(f"{launch.provider!r} cannot be recorded", code="provider_unsupported") from error
        session = launch.session_id.strip()
        ordinal = 1 + sum(1 for capture in self._captures if capture.record.agent_session_id == session)
        record = TapeConnection(
            connection_id=f"connection-{len(self._captures) + 1}",
            provider=provider.id,
            agent_session_id=session,
            root_agent_session_id=launch.root_session_id.strip() or session,
            launch_ordinal=ordinal,
            cwd_token=f"${{SESSION_CWD:{session}:{ordinal}}}",
            capture_origin=origin,
        )
        projection = TapeProjection(
            provider, cwd=launch.cwd, cwd_token=record.cwd_token, environment=launch.environment
        )
        capture = Capture(self, record, projection, self._now())
        self._captures.append(capture)
        self.manifest.connections.append(record)
        self._write_manifest()
        return capture

    def append(self, capture: Capture, kind: str, data: bytes, message: str, exit_code: int | None) -> int:
        """Queue, project and write one chunk (§5.3)."""
        self._require_open()
        if len(data) + len(message.encode()) > MAX_PAYLOAD:
            raise _too_large(capture, "a chunk", MAX_PAYLOAD)
        self._global_seq += 1
        capture.chunk_seq += 1
        frame = Frame(
            capture.connection_id,
            capture.chunk_seq,
            self._global_seq,
            max(0, self._now() - capture.started),
            kind,
            data,
            exit_code,
            message,
        )
        entry = _Entry(frame)
        self._queue.append(entry)
        try:
            self._project(capture, entry)
        except CassetteRejected as error:
            self._queue.remove(entry)
            if entry in capture.open:
                capture.open.remove(entry)
            self._global_seq -= 1
            capture.chunk_seq -= 1
            raise RecordingError(
                f"{capture.connection_id} wrote what a tape must not hold: {error.message}",
                code="tape_projection_failed",
                place=error.place,
            ) from error
        self._write_ready()
        return frame.chunk_seq

    def finalise(self) -> TapeManifest:
        """Write what is left, hash, and mark the tape complete."""
        self._require_open()
        for capture in self._captures:
            if capture.open:
                self._release(capture)
            capture.detached = True
        self._write_ready()
        if self._queue:
            raise RecordingError("chunks are left that cannot be written", code="transport_finalize_failed")
        self._sync()
        self._statistics.into(self.manifest)
        self.manifest.frames_sha256 = self._digest.hexdigest()
        self.manifest.status = "complete"
        self._write_manifest()
        self._closed = True
        return self.manifest

    def abort(self) -> None:
        """Stop; the manifest stays `incomplete`."""
        for capture in self._captures:
            capture.detached = True
        if not self._closed:
            self._sync()
            self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise RecordingError("the tape is finished", code="transport_finalized")

    def _project(self, capture: Capture, entry: _Entry) -> None:
        if entry.frame.kind == "outbound":
            entry.frame = msgspec.structs.replace(entry.frame, data=capture.projection.outbound(entry.frame.data))
            entry.ready = True
        elif entry.frame.kind == "stdout":
            capture.open.append(entry)
            if entry.frame.data.endswith(b"\n"):
                self._release(capture)
        else:
            entry.ready = True

    def _release(self, capture: Capture) -> None:
        """Project the lines of all open stdout chunks and put them back where they were (re-anchoring, §5.4)."""
        entries = capture.open
        for entry, data in zip(
            entries, reanchor([e.frame.data for e in entries], capture.projection.line), strict=True
        ):
            entry.frame = msgspec.structs.replace(entry.frame, data=data)
            entry.ready = True
        capture.open = []

    def _write_ready(self) -> None:
        while self._queue and self._queue[0].ready:
            frame = self._queue[0].frame
            line = encode_frame_line(frame)
            if frame.payload_bytes > MAX_PAYLOAD:
                raise RecordingError(
                    f"a projected chunk of {frame.connection_id} is larger than {MAX_PAYLOAD} bytes",
                    code="tape_size_limit",
                )
            if self._statistics.stored_bytes + len(line) > MAX_STORED:
                raise RecordingError(f"the tape is larger than {MAX_STORED} bytes", code="tape_size_limit")
            self._queue.popleft()
            self._frames.write(line)
            self._digest.update(line)
            self._statistics.add(frame, len(line))

    def _sync(self) -> None:
        self._frames.flush()
        os.fsync(self._frames.fileno())
        self._frames.close()

    def _write_manifest(self) -> None:
        target = self._folder / "manifest.json"
        staged = target.with_name("manifest.json.tmp")
        staged.write_bytes(encode_manifest(self.manifest))
        staged.replace(target)


def _too_large(capture: Capture, what: str, limit: int) -> RecordingError:
    return RecordingError(
        f"{what} of {capture.connection_id} is larger than {limit} bytes",
        code="tape_size_limit",
        place=Place(file="provider/frames.jsonl"),
    )
