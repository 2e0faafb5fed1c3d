"""A Cassette folder as typed parts. Frames are streamed; nothing here judges (see `audit`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from cassettes.artifacts.files import read_bytes
from cassettes.core import tape
from cassettes.core.activity import ActivityEvent, decode_line
from cassettes.core.blobs import BlobManifest, decode_blob_manifest
from cassettes.core.checkpoints import CheckpointPlan, decode_plan
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.manifest import CassetteManifest, decode_manifest, manifest_hash
from cassettes.core.policy import BLOB_FOLDER, MAX_FRAME_LINE_BYTES, POLICY
from cassettes.core.state import ReplayState, decode_state
from cassettes.core.tape import Frame, TapeManifest, decode_frame_line

FILES = POLICY.files
MAX_MANIFEST_BYTES = 1_048_576  # cassette-v7 §13.7
_BLOCK = 1 << 18
_MAX_BYTES = POLICY.limits.max_cassette_bytes


class CassetteFolder:
    """One published Cassette (or a finished candidate) on disk. Every read raises `CassetteRejected`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def manifest_bytes(self) -> bytes:
        """The exact bytes of `cassette.json`."""
        name = FILES.cassette_manifest.path
        return read_bytes(self.path / name, MAX_MANIFEST_BYTES, file=name)

    @cached_property
    def manifest(self) -> CassetteManifest:
        """`cassette.json`."""
        return decode_manifest(self.manifest_bytes)

    @cached_property
    def manifest_sha256(self) -> str:
        """Lower-case hex digest of the manifest's exact bytes."""
        return manifest_hash(self.manifest_bytes)

    def _read(self, name: str) -> bytes:
        return read_bytes(self.path / name, _MAX_BYTES, file=name)

    def activity_lines(self) -> Iterator[tuple[int, bytes]]:
        """(line number, bytes) of the activity timeline."""
        yield from _lines(self.path / FILES.activity_events.path, FILES.activity_events.path, _MAX_BYTES - 1)

    def events(self) -> list[ActivityEvent]:
        """The activity timeline."""
        return [decode_line(line, number) for number, line in self.activity_lines()]

    def plan(self) -> CheckpointPlan:
        """The checkpoint plan."""
        return decode_plan(self._read(FILES.checkpoint_plan.path))

    def tape_manifest(self) -> TapeManifest:
        """`provider/manifest.json`."""
        return tape.decode_manifest(self._read(FILES.provider_manifest.path))

    def frame_lines(self) -> Iterator[tuple[int, bytes]]:
        """(line number, bytes) of the provider tape."""
        yield from _lines(self.path / FILES.provider_frames.path, FILES.provider_frames.path, MAX_FRAME_LINE_BYTES)

    def frame_blocks(self) -> Iterator[bytes]:
        """The provider tape in pieces of whole lines; one that is too long comes alone and may be cut off."""
        rest = b""
        for data in _opened(self.path / FILES.provider_frames.path, FILES.provider_frames.path, _BLOCK):
            cut = data.rfind(b"\n") + 1
            if cut:
                yield rest + data[:cut]
                rest = data[cut:]
            else:
                rest += data
                if len(rest) > MAX_FRAME_LINE_BYTES + 2:
                    yield rest
                    rest = b""
        if rest:
            yield rest

    def frames(self) -> Iterator[Frame]:
        """The provider tape, frame by frame."""
        for number, line in self.frame_lines():
            yield decode_frame_line(line, number)

    def initial_state(self) -> ReplayState | None:
        """What the recording started from; None for `create-session`."""
        if not (self.path / FILES.initial_state.path).exists():
            return None
        return decode_state(self._read(FILES.initial_state.path), file=FILES.initial_state.path)

    def initial_state_bytes(self) -> bytes | None:
        """The exact recorded bytes of the initial state, or None."""
        return self._read(FILES.initial_state.path) if (self.path / FILES.initial_state.path).exists() else None

    def expected_state_bytes(self) -> bytes:
        """The exact recorded bytes of the expected state."""
        return self._read(FILES.expected_state.path)

    def expected_state(self) -> ReplayState:
        """What replay must arrive at."""
        return decode_state(self._read(FILES.expected_state.path), file=FILES.expected_state.path)

    def blobs(self) -> BlobManifest:
        """`blobs/manifest.json`."""
        return decode_blob_manifest(self._read(FILES.blob_manifest.path))

    def blob(self, digest: str) -> bytes:
        """The bytes of one referenced blob (at most 20 MiB)."""
        name = BLOB_FOLDER + digest.strip().lower()
        return read_bytes(self.path / name, POLICY.limits.max_portable_blob_bytes, file=name)


def _open(path: Path, name: str) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError:
        raise CassetteRejected(
            "A file of the Cassette is missing.", code="file_missing", place=Place(file=name)
        ) from None


def _opened(path: Path, name: str, size: int) -> Iterator[bytes]:
    with _open(path, name) as file:
        while data := file.read(size):
            yield data


def _lines(path: Path, name: str, limit: int) -> Iterator[tuple[int, bytes]]:
    with _open(path, name) as file:
        number = 0
        while line := file.readline(limit + 3):
            number += 1
            if len(line.rstrip(b"\r\n")) > limit:
                raise CassetteRejected(
                    "A line is too long.",
                    code="line_too_long",
                    place=Place(file=name, line=number),
                    expected=f"at most {limit} bytes",
                )
            yield number, line
