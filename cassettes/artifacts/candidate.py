"""The directory that is written while recording (spec: cassette-v7 §2.1, §6.3, §13.1)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from cassettes.artifacts.blob_references import BlobReference, blob_references
from cassettes.artifacts.cassette import FILES, CassetteFolder
from cassettes.artifacts.files import FILE_MODE, make_folder, write_new, write_whole
from cassettes.artifacts.locks import FolderLock
from cassettes.core.activity import ActivityEvent, encode_line
from cassettes.core.blobs import BlobEntry, BlobManifest, check_entry, empty_manifest, encode_blob_manifest
from cassettes.core.checkpoints import CheckpointPlan, bootstrap_plan, encode_plan
from cassettes.core.errors import RecordingError
from cassettes.core.observation import JournalEntry, encode_entry, merge_entry
from cassettes.core.policy import BLOB_FOLDER, POLICY
from cassettes.core.state import check_state, decode_state

PRIVATE_FOLDER = ".recording"
JOURNAL = f"{PRIVATE_FOLDER}/observation-journal.jsonl"
BlobSource = Callable[[BlobReference], bytes]
_Position = tuple[str, int, int]


def no_blobs(reference: BlobReference) -> bytes:
    """A blob source that has nothing."""
    raise RecordingError(
        "An image of the recording is not available.",
        code="expected_state_export_failed",
        hint="Keep the attachments until the recording is complete.",
    )


class Candidate:
    """One candidate folder. Owned by one process; its lock tells a sweep that the owner lives."""

    def __init__(self, path: Path, recording_id: str, lock: FolderLock | None) -> None:
        self.path = path
        self.recording_id = recording_id
        self.events = 0  # accepted so far
        self._lock = lock
        self._activity: BinaryIO | None = None
        self._journal: BinaryIO | None = None
        self._entries: dict[_Position, JournalEntry] = {}
        self._blobs: BlobManifest = empty_manifest()

    @classmethod
    def create(cls, path: Path, recording_id: str, lock: FolderLock | None) -> Candidate:
        """Make the folders and the empty parts: blob manifest, timeline, journal, bootstrap plan."""
        candidate = cls(path, recording_id, lock)
        for name in ("provider", BLOB_FOLDER, PRIVATE_FOLDER):
            make_folder(path / name)
        candidate._write_blob_manifest()
        candidate._activity = _append_only(path / FILES.activity_events.path)
        candidate._journal = _append_only(path / JOURNAL)
        candidate.write_plan(bootstrap_plan())
        return candidate

    # ------------------------------------------------------------------------------------------ parts
    @property
    def tape_folder(self) -> Path:
        """Where the tape recorder writes `manifest.json` and `frames.jsonl`."""
        return self.path / "provider"

    @property
    def folder(self) -> CassetteFolder:
        """The candidate read as a Cassette (its `cassette.json` exists only while publishing)."""
        return CassetteFolder(self.path)

    def append_event(self, event: ActivityEvent) -> None:
        """Append one accepted, portable event to the timeline."""
        assert self._activity is not None, "the candidate is closed"
        self._activity.write(encode_line(event))
        self._activity.flush()
        self.events += 1

    def append_journal(self, entry: JournalEntry) -> None:
        """Append a unit to the observation journal, or merge it into the entry of its position (§11.2)."""
        assert self._journal is not None, "the candidate is closed"
        key = (entry.position.connection_id, entry.position.chunk_seq, entry.position.unit_index)
        known = self._entries.get(key)
        if known is None:
            self._entries[key] = entry
            self._journal.write(encode_entry(entry))
            self._journal.flush()
            return
        merged = merge_entry(known, entry)
        if merged == known:
            return
        self._entries[key] = merged
        self._journal.close()
        write_whole(self.path / JOURNAL, b"".join(encode_entry(one) for one in self._entries.values()))
        self._journal = _append_only(self.path / JOURNAL)

    @property
    def journal(self) -> list[JournalEntry]:
        """The journal so far."""
        return list(self._entries.values())

    def write_plan(self, plan: CheckpointPlan) -> None:
        """Replace the checkpoint plan."""
        write_whole(self.path / FILES.checkpoint_plan.path, encode_plan(plan))

    def write_initial_state(self, data: bytes, source: BlobSource = no_blobs) -> None:
        """Write the state the recording starts from, and the blobs it references."""
        self._write_state(FILES.initial_state.path, data, source)

    def write_expected_state(self, data: bytes, source: BlobSource = no_blobs) -> None:
        """Write the state replay must arrive at, and the blobs it references."""
        self._write_state(FILES.expected_state.path, data, source)

    # ------------------------------------------------------------------------------------------ states, blobs
    def _write_state(self, name: str, data: bytes, source: BlobSource) -> None:
        state = decode_state(data, file=name)
        check_state(state, file=name)
        for reference in blob_references(state):
            self.add_blob(reference, source)
        self._write_blob_manifest()
        write_whole(self.path / name, data)

    def add_blob(self, reference: BlobReference, source: BlobSource) -> None:
        """Store the bytes of a reference once; a reference that is in the manifest already is not fetched again."""
        if any(BlobReference.of(entry) == reference for entry in self._blobs.blobs):
            return
        data = source(reference)
        if len(data) > POLICY.limits.max_portable_blob_bytes:
            raise RecordingError(
                "An image of the recording is too large.",
                code="expected_state_export_failed",
                expected=f"at most {POLICY.limits.max_portable_blob_bytes} bytes",
                found=len(data),
            )
        digest = hashlib.sha256(data).hexdigest()
        entry = BlobEntry(
            kind=reference.kind,
            sha256=digest,
            size_bytes=len(data),
            agent_session_id=reference.agent_session_id,
            attachment_id=reference.attachment_id,
            relative_path=reference.relative_path,
            mime_type=reference.mime_type,
        )
        check_entry(entry, len(self._blobs.blobs))
        path = self.path / BLOB_FOLDER / digest
        if not path.exists():
            write_new(path, (data,))
        self._blobs.blobs.append(entry)

    def _write_blob_manifest(self) -> None:
        write_whole(self.path / FILES.blob_manifest.path, encode_blob_manifest(self._blobs))

    # ------------------------------------------------------------------------------------------ end
    def close(self) -> None:
        """Flush and close the appended files; nothing can be written afterwards."""
        for file in (self._activity, self._journal):
            if file is not None:
                file.flush()
                os.fsync(file.fileno())
                file.close()
        self._activity = self._journal = None

    def release(self) -> None:
        """Give up ownership: a later sweep may remove what is left."""
        self.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _append_only(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    return os.fdopen(descriptor, "ab")
