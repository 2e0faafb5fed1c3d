"""A copy of a Cassette without its secrets: a new Cassette with an id of its own that still replays.

The secrets are replaced everywhere in the same way: in the timeline, the states, the tape and the name. So what the
adapters make of the tape still is what the states say, and no unit changes its position on the tape.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cassettes.artifacts.cassette import FILES, CassetteFolder
from cassettes.artifacts.files import make_folder, sha256_of, write_new
from cassettes.artifacts.redact_text import Redactor
from cassettes.artifacts.secrets import SecretFinding
from cassettes.core.errors import InputRejected
from cassettes.core.manifest import MAX_NAME, CassetteManifest, Redaction, encode_manifest
from cassettes.core.tape import Frame, TapeStatistics, encode_frame_line, reanchor
from cassettes.core.tape import encode_manifest as encode_tape_manifest

_NAMESPACE = uuid.UUID("0f4a4d0c-8a8e-4b53-9d0d-2d4f8f0c5a77")
_SUFFIX = " (redacted)"
_TEXT_FILES = (FILES.activity_events.path, FILES.initial_state.path, FILES.expected_state.path)


def redacted_copy(folder: CassetteFolder, findings: list[SecretFinding], target: Path) -> CassetteManifest:
    """Write the redacted copy of a verified Cassette to the new folder `target`; gives its manifest.

    The same secrets give the same copy. Raises `redaction_impossible` when a secret is too short to be replaced.
    Whoever calls this must verify and replay the copy before it is published.
    """
    redactor = Redactor(finding.value for finding in findings)
    short = [finding for finding in findings if redactor.text(finding.value) == finding.value]
    if short or not findings:
        raise InputRejected(
            "There is nothing to redact." if not findings else "A secret is too short to be replaced everywhere.",
            code="redaction_impossible",
            found=short[0].kind if short else None,
            hint="Discard the Cassette, or publish it as it is.",
        )
    make_folder(target)
    for name in _TEXT_FILES:
        if (folder.path / name).exists():
            _write(target / name, _redacted_lines(folder.path / name, redactor))
    _write(target / FILES.checkpoint_plan.path, iter([(folder.path / FILES.checkpoint_plan.path).read_bytes()]))
    shutil.copytree(folder.path / "blobs", target / "blobs", ignore=shutil.ignore_patterns(".*"))
    _redact_tape(folder, redactor, target)
    manifest = _manifest(folder.manifest, findings, redactor, target)
    _write(target / FILES.cassette_manifest.path, iter([encode_manifest(manifest)]))
    return manifest


def _write(path: Path, chunks: Iterator[bytes]) -> None:
    make_folder(path.parent)
    write_new(path, chunks)


def _redacted_lines(source: Path, redactor: Redactor) -> Iterator[bytes]:
    with source.open("rb") as lines:
        for line in lines:
            yield redactor.json(line)


# ------------------------------------------------------------------------------------------------- the tape
def _redact_tape(folder: CassetteFolder, redactor: Redactor, target: Path) -> None:
    frames = list(folder.frames())
    streams: dict[tuple[str, str], list[int]] = {}
    for index, frame in enumerate(frames):
        if frame.data:
            streams.setdefault((frame.connection_id, frame.kind), []).append(index)
    for members in streams.values():
        _redact_stream(frames, members, redactor)
    statistics = TapeStatistics()

    def lines() -> Iterator[bytes]:
        for frame in frames:
            clean = msgspec.structs.replace(frame, message=redactor.text(frame.message))
            line = encode_frame_line(clean)
            statistics.add(clean, len(line))
            yield line

    _write(target / FILES.provider_frames.path, lines())
    manifest = folder.tape_manifest()
    statistics.into(manifest)
    manifest.frames_sha256 = sha256_of(target / FILES.provider_frames.path)
    _write(target / FILES.provider_manifest.path, iter([encode_tape_manifest(manifest)]))


def _redact_stream(frames: list[Frame], members: list[int], redactor: Redactor) -> None:
    """One stream: lines that change move whole into the frame that completes them (provider-tape §5.4)."""
    chunks = [frames[index].data for index in members]
    shares = redactor.shares(b"".join(chunks).split(b"\n"))
    number = -1

    def project(line: bytes) -> bytes:
        nonlocal number
        number += 1
        return redactor.json(line, shares.get(number))

    for index, data in zip(members, reanchor(chunks, project), strict=True):
        if data != frames[index].data:
            frames[index] = msgspec.structs.replace(frames[index], data=data)


# ------------------------------------------------------------------------------------------------- the manifest
def _manifest(
    source: CassetteManifest, findings: list[SecretFinding], redactor: Redactor, target: Path
) -> CassetteManifest:
    def fresh(what: str) -> str:
        seed = ":".join([source.id, what, *sorted(finding.finding_id for finding in findings)])
        return str(uuid.uuid5(_NAMESPACE, seed))

    files = []
    for file in source.files:
        path = target / file.path
        files.append(msgspec.structs.replace(file, size_bytes=path.stat().st_size, sha256=sha256_of(path)))
    name = redactor.text(source.name)[: MAX_NAME - len(_SUFFIX)].rstrip() + _SUFFIX
    return msgspec.structs.replace(
        source,
        id=fresh("cassette"),
        source_recording_id=fresh("recording"),
        name=name,
        files=files,
        total_bytes=sum(file.size_bytes for file in files),
        redaction=Redaction(of_cassette_id=source.id, secrets=len(findings)),
    )
