"""Where the bytes of a Cassette are: by file, connection, frame kind and message type, and the largest frames.

Stored bytes are those of lines on disk, payload bytes those that the provider sent or got. A message belongs to its
type whole, however many frames carried it; its `payloadBytes` include its newline.
"""

from __future__ import annotations

import heapq
import io
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.files import walk_files
from cassettes.core.tape import Frame, decode_frame_line

JsonObject = dict[str, Any]

LARGEST = 10
_MAX_TYPES = 200  # a hostile tape may invent a type for each message; what is beyond is counted together
_OTHER = "other"
_RESPONSE = "response"


@dataclass(slots=True)
class Sum:
    """How many, and how large together."""

    count: int = 0
    stored_bytes: int = 0
    payload_bytes: int = 0

    def add(self, stored: int, payload: int) -> None:
        """Count one."""
        self.count += 1
        self.stored_bytes += stored
        self.payload_bytes += payload


@dataclass(frozen=True, slots=True, order=True)
class LargeFrame:
    """One of the largest frames."""

    stored_bytes: int
    line: int
    connection_id: str
    kind: str
    message_type: str


@dataclass(slots=True)
class SizeEvidence:
    """The account of one Cassette. Lists are sorted, the largest first."""

    total_bytes: int = 0
    files: list[tuple[str, int]] = field(default_factory=list)
    connections: list[tuple[str, Sum]] = field(default_factory=list)
    kinds: list[tuple[str, Sum]] = field(default_factory=list)
    message_types: list[tuple[str, Sum]] = field(default_factory=list)
    largest_frames: list[LargeFrame] = field(default_factory=list)

    def as_dict(self) -> JsonObject:
        """The account as command, API and page show it."""

        def rows(sums: list[tuple[str, Sum]]) -> list[JsonObject]:
            return [{"name": name, **_camel(asdict(one))} for name, one in sums]

        return {
            "totalBytes": self.total_bytes,
            "files": [{"name": name, "bytes": size} for name, size in self.files],
            "connections": rows(self.connections),
            "kinds": rows(self.kinds),
            "messageTypes": rows(self.message_types),
            "largestFrames": [_camel(asdict(frame)) for frame in self.largest_frames],
        }


def _camel(members: JsonObject) -> JsonObject:
    return {camel_case(name): value for name, value in members.items()}


def camel_case(name: str) -> str:
    """`stored_bytes` as `storedBytes`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class _Item(msgspec.Struct):
    type: str = ""


class _Params(msgspec.Struct):
    item: _Item | None = None


class _Head(msgspec.Struct):
    """What tells the type of a message; everything else is skipped."""

    method: str = ""
    type: str = ""
    params: _Params | None = None


class _Method(msgspec.Struct):
    method: str = ""


_HEAD = msgspec.json.Decoder(_Head)
_METHOD = msgspec.json.Decoder(_Method)


def message_type(line: bytes) -> str:
    """`item/completed agentMessage`, `assistant_delta`, `response`, or `other` for what is no message."""
    try:
        head = _HEAD.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _method_of(line)
    if head.method:
        item = head.params.item.type if head.params is not None and head.params.item is not None else ""
        return f"{head.method} {item}".strip()
    return head.type or _RESPONSE


def _method_of(line: bytes) -> str:
    """The method of a message whose other members are not of the usual types."""
    try:
        return _METHOD.decode(line).method or _OTHER
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _OTHER


class _Account:
    def __init__(self) -> None:
        self.connections: dict[str, Sum] = {}
        self.kinds: dict[str, Sum] = {}
        self.types: dict[str, Sum] = {}
        self.largest: list[LargeFrame] = []
        self._rests: dict[tuple[str, str], list[bytes]] = {}
        self._stored: dict[tuple[str, str], int] = {}

    def take(self, frame: Frame, line: int) -> None:
        """Count one frame, and the messages that it completes."""
        payload = frame.payload_bytes
        self.connections.setdefault(frame.connection_id, Sum()).add(frame.size, payload)
        self.kinds.setdefault(frame.kind, Sum()).add(frame.size, payload)
        last = self._messages(frame) if frame.data else frame.kind
        large = LargeFrame(frame.size, line, frame.connection_id, frame.kind, last)
        if len(self.largest) < LARGEST:
            heapq.heappush(self.largest, large)
        elif large > self.largest[0]:
            heapq.heapreplace(self.largest, large)

    def _messages(self, frame: Frame) -> str:
        """The type of the last message in a frame, as far as it is known by then."""
        key = (frame.connection_id, frame.kind)
        *complete, rest = frame.data.split(b"\n")
        held = self._rests.setdefault(key, [])
        stored, data = frame.size, len(frame.data)
        last = ""
        for number, line in enumerate(complete):
            whole = b"".join([*held, line]) if number == 0 and held else line
            if number == 0:
                held.clear()
            last = self._count(frame, whole, stored * (len(line) + 1) // data + self._stored.pop(key, 0))
        if rest:
            held.append(rest)
            self._stored[key] = self._stored.get(key, 0) + stored * len(rest) // data
        return last or "part of a message"

    def _count(self, frame: Frame, line: bytes, stored: int) -> str:
        if frame.kind not in ("stdout", "outbound"):
            name = frame.kind
        elif not line.strip():
            name = "blank line"
        else:
            name = f"{'→' if frame.kind == 'outbound' else '←'} {message_type(line)}"
        if name not in self.types and len(self.types) >= _MAX_TYPES:
            name = _OTHER
        self.types.setdefault(name, Sum()).add(stored, len(line) + 1)
        return name

    def finish(self) -> None:
        """Count what was never completed."""
        for (_, kind), held in self._rests.items():
            if held:
                self.types.setdefault(f"{kind} without an end", Sum()).add(0, sum(map(len, held)))


def size_evidence(folder: CassetteFolder) -> SizeEvidence:
    """The account of a verified Cassette, in one pass over its tape."""
    account = _Account()
    line = 0
    for block in folder.frame_blocks():
        for text in io.BytesIO(block):
            line += 1
            account.take(decode_frame_line(text, line), line)
    account.finish()
    files = [(name, size) for name, _, size in walk_files(folder.path)]
    return SizeEvidence(
        total_bytes=sum(size for _, size in files),
        files=sorted(files, key=lambda one: (-one[1], one[0])),
        connections=_sorted(account.connections),
        kinds=_sorted(account.kinds),
        message_types=_sorted(account.types),
        largest_frames=sorted(account.largest, reverse=True),
    )


def _sorted(sums: dict[str, Sum]) -> list[tuple[str, Sum]]:
    return sorted(sums.items(), key=lambda one: (-one[1].payload_bytes, one[0]))
