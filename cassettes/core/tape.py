"""The provider tape on disk: manifest v4 with its statistics, and frames (provider-tape §2, §3)."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import pybase64

from cassettes.core import jsontext
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.policy import MAX_FRAME_LINE_BYTES, POLICY
from cassettes.core.records import Record, indented_bytes, read_record

TAPE_SCHEMA_VERSION = 4
PROJECTION_VERSION = 1
KINDS = frozenset({"outbound", "stdout", "stderr", "exit"})
MANIFEST_FILE = POLICY.files.provider_manifest.path
FRAMES_FILE = POLICY.files.provider_frames.path


class KindStatistics(Record):
    """What one frame kind amounts to."""

    frame_count: int = 0
    payload_bytes: int = 0
    stored_bytes: int = 0


class TapeLimits(Record):
    """Limits under which the tape was recorded, in bytes."""

    max_frame_bytes: int = 0
    max_stored_bytes: int = 0


class TapeConnection(Record):
    """One recorded provider process."""

    connection_id: str = ""
    provider: str = ""
    agent_session_id: str = ""
    root_agent_session_id: str = ""
    launch_ordinal: int = 0
    cwd_token: str = ""
    capture_origin: str = ""


class TapeManifest(Record):
    """`provider/manifest.json`."""

    schema_version: int = 0
    projection_version: int = 0
    status: str = ""
    frame_count: int = 0
    payload_bytes: int = 0
    stored_bytes: int = 0
    max_frame_bytes: int = 0
    limits: TapeLimits = msgspec.field(default_factory=TapeLimits)
    frames_by_kind: dict[str, KindStatistics] = msgspec.field(default_factory=dict)
    frames_sha256: str = msgspec.field(default="", name="framesSha256")
    connections: list[TapeConnection] = msgspec.field(default_factory=list)


class Frame(msgspec.Struct, frozen=True):
    """One recorded chunk. `data` is decoded; `size` is the length of its line on disk, newline included."""

    connection_id: str
    chunk_seq: int
    global_seq: int
    elapsed_ms: int
    kind: str
    data: bytes = b""
    exit_code: int | None = None
    message: str = ""
    size: int = 0

    @property
    def payload_bytes(self) -> int:
        """Decoded data plus the UTF-8 length of the message."""
        return len(self.data) + len(self.message.encode())


class WireFrame(msgspec.Struct, rename="camel"):
    """A frame line as the fast reader takes it; `data` is still base64."""

    connection_id: str
    chunk_seq: int
    global_seq: int
    elapsed_ms: int
    kind: str
    data: str = ""
    exit_code: int | None = None
    message: str = ""


class _Lenient(Record):
    """A frame line as the slow, lenient reader takes it."""

    omit_empty: ClassVar[frozenset[str]] = frozenset({"data", "message"})
    connection_id: str = ""
    chunk_seq: int = 0
    global_seq: int = 0
    elapsed_ms: int = 0
    kind: str = ""
    data: str = ""
    exit_code: int | None = None
    message: str = ""


_FAST = msgspec.json.Decoder(WireFrame)


def decode_manifest(data: bytes) -> TapeManifest:
    """`provider/manifest.json` as a record; the rules of loading are checked elsewhere."""
    return read_record(TapeManifest, jsontext.decode_strict(data, file=MANIFEST_FILE), file=MANIFEST_FILE)


def encode_manifest(manifest: TapeManifest) -> bytes:
    """The exact bytes of the manifest."""
    return indented_bytes(manifest)


def encode_frame_line(frame: Frame) -> bytes:
    """One line of `frames.jsonl`, newline included."""
    wire: dict[str, Any] = {
        "connectionId": frame.connection_id,
        "chunkSeq": frame.chunk_seq,
        "globalSeq": frame.global_seq,
        "elapsedMs": frame.elapsed_ms,
        "kind": frame.kind,
    }
    if frame.data:
        wire["data"] = pybase64.b64encode_as_string(frame.data)
    if frame.exit_code is not None:
        wire["exitCode"] = frame.exit_code
    if frame.message:
        wire["message"] = frame.message
    return jsontext.compact(wire).encode() + b"\n"


def decode_frame_line(line: bytes, number: int) -> Frame:
    """One line as a frame; `number` is its 1-based line number, for errors."""
    size = len(line)
    text = line.rstrip(b"\r\n")
    if len(text) > MAX_FRAME_LINE_BYTES:
        raise CassetteRejected(
            "the line is too long",
            code="tape_line_too_long",
            place=Place(FRAMES_FILE, number),
            expected=f"at most {MAX_FRAME_LINE_BYTES} bytes",
            found=len(text),
        )
    wire: WireFrame | _Lenient | None = _fast(text) if _written_by_us(text) else None
    if wire is None:
        wire = _lenient(text, number)
    return Frame(
        wire.connection_id,
        wire.chunk_seq,
        wire.global_seq,
        wire.elapsed_ms,
        wire.kind,
        _payload(wire.data, number) if wire.data else b"",
        wire.exit_code,
        wire.message,
        size,
    )


def decode_frame_block(block: bytes) -> list[WireFrame] | None:
    """Many whole lines at once, when all of them are in canonical form; None: read them one by one."""
    try:
        frames = _FAST.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    names = 8 * lines
    names -= [frame.data for frame in frames].count("") + [frame.message for frame in frames].count("")
    names -= [frame.exit_code for frame in frames].count(None)
    return frames if len(frames) == lines and block.count(b'":') == names else None


def _written_by_us(text: bytes) -> bool:
    """A line in canonical form: no member twice, none in another letter case. Others take the slow way."""
    return text.startswith(b'{"connectionId":') and text.count(b'":') <= 8 and b"\\u" not in text[:64]


def _fast(text: bytes) -> WireFrame | None:
    try:
        wire = _FAST.decode(text)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    names = text.count(b'":')
    given = 5 + bool(wire.data) + (wire.exit_code is not None) + bool(wire.message)
    sound = wire.chunk_seq >= 0 and wire.global_seq >= 0 and wire.elapsed_ms >= 0
    return wire if names == given and sound else None


def _lenient(text: bytes, number: int) -> _Lenient:
    if not text.strip():
        raise CassetteRejected("the line is blank", code="tape_frame_invalid", place=Place(FRAMES_FILE, number))
    value = jsontext.decode_strict(text, file=FRAMES_FILE, line=number)
    return read_record(_Lenient, value, file=FRAMES_FILE, line=number)


def _payload(data: str, number: int) -> bytes:
    try:
        return pybase64.b64decode(data.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise CassetteRejected(
            f"the payload is not base64: {error}",
            code="tape_base64_invalid",
            place=Place(FRAMES_FILE, number, "$.data"),
        ) from None


class TapeStatistics:
    """Counts of a tape while it is written or read; compared with or copied into the manifest."""

    def __init__(self) -> None:
        self.by_kind: dict[str, KindStatistics] = {}
        self.max_frame_bytes = 0

    def add(self, frame: Frame, stored_bytes: int) -> None:
        """Count one frame with the length of its line."""
        self.add_many(frame.kind, [frame.payload_bytes], stored_bytes)

    def add_many(self, kind: str, payloads: list[int], stored_bytes: int) -> None:
        """Count frames of one kind: the bytes that each carries, and the length of all their lines."""
        counted = self.by_kind.setdefault(kind, KindStatistics())
        counted.frame_count += len(payloads)
        counted.payload_bytes += sum(payloads)
        counted.stored_bytes += stored_bytes
        self.max_frame_bytes = max(self.max_frame_bytes, *payloads)

    @property
    def frame_count(self) -> int:
        return sum(one.frame_count for one in self.by_kind.values())

    @property
    def payload_bytes(self) -> int:
        return sum(one.payload_bytes for one in self.by_kind.values())

    @property
    def stored_bytes(self) -> int:
        return sum(one.stored_bytes for one in self.by_kind.values())

    def into(self, manifest: TapeManifest) -> None:
        """Write the counts into a manifest."""
        manifest.frame_count = self.frame_count
        manifest.payload_bytes = self.payload_bytes
        manifest.stored_bytes = self.stored_bytes
        manifest.max_frame_bytes = self.max_frame_bytes
        manifest.frames_by_kind = {kind: self.by_kind[kind] for kind in sorted(self.by_kind)}

    def differences(self, manifest: TapeManifest) -> list[str]:
        """Members of the manifest that say something else: evidence to report, no reason to reject."""
        counted = TapeManifest()
        self.into(counted)
        names = ("frame_count", "payload_bytes", "stored_bytes", "max_frame_bytes", "frames_by_kind")
        return [name for name in names if getattr(counted, name) != getattr(manifest, name)]


def reanchor(chunks: list[bytes], project: Callable[[bytes], bytes]) -> list[bytes]:
    """Chunks with every line projected: an unchanged line keeps its chunks, a changed one moves into its last chunk."""
    joined = b"".join(chunks)
    ends: list[int] = []
    total = 0
    for chunk in chunks:
        total += len(chunk)
        ends.append(total)
    parts: list[list[bytes]] = [[] for _ in chunks]
    start = 0
    number = 0
    while start < total:
        newline = joined.find(b"\n", start)
        end = newline + 1 if newline >= 0 else total
        line = joined[start:end]
        projected = project(line)
        while ends[number] <= start:
            number += 1
        if projected == line:
            at, here = start, number
            while at < end:
                piece = joined[at : min(end, ends[here])]
                parts[here].append(piece)
                at += len(piece)
                here += 1
        else:
            last = number
            while ends[last] < end:
                last += 1
            parts[last].append(projected)
        start = end
    return [b"".join(part) for part in parts]
