"""What a worker told so far, so that a viewer who was not there can be told it again.

Batches are kept in one file in the worker's folder; in memory is only where each begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

JsonObject = dict[str, Any]

PART_BYTES = 512 * 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
# The row that an upsert replaces is known by these members; a later upsert of the same row makes an earlier one void.
_ROW_KEYS: dict[str, tuple[str, ...]] = {
    "session": ("id",),
    "turn": ("sessionId", "id"),
    "message": ("sessionId", "id"),
    "interaction": ("sessionId", "turnId", "requestId"),
    "goal": ("sessionId",),
}
_LATEST = ("playback", "queue", "verification")


class Spool:
    """The batches of one generation, numbered from 1."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b")
        self._starts: list[int] = [0]

    @property
    def last(self) -> int:
        """Number of the newest batch; 0 when there is none."""
        return len(self._starts) - 1

    def add(self, events: list[JsonObject]) -> int:
        """Keep a batch; gives its number."""
        data = _encode(events)
        self._file.seek(self._starts[-1])
        self._file.write(data)
        self._starts.append(self._starts[-1] + len(data))
        return self.last

    def events(self, after: int, to: int) -> list[JsonObject]:
        """Every event of the batches after `after` up to and with `to`, without those that later ones made void."""
        first, last = max(0, after), min(to, self.last)
        found: list[JsonObject] = []
        self._file.flush()
        for number in range(first, last):
            self._file.seek(self._starts[number])
            found += _decode(self._file.read(self._starts[number + 1] - self._starts[number]))
        return compacted(found)

    def close(self) -> None:
        self._file.close()


def compacted(events: list[JsonObject]) -> list[JsonObject]:
    """The events without upserts and states that a later event replaces; applying them gives the same result.

    Appends to a message are void too when the whole message follows, and everything of a Surface that was begun anew.
    """
    seen: set[tuple[object, ...]] = set()
    void: set[object] = set()  # Surfaces that begin anew later on
    kept: list[JsonObject] = []
    for event in reversed(events):
        surface = event.get("surface")
        if surface in void:
            continue
        if event["type"] == "reset":
            void.add(surface)
        key = _key(event)
        if key is not None:
            if key in seen:
                continue
            if event["type"] != "append":
                seen.add(key)
        kept.append(event)
    kept.reverse()
    return kept


def _key(event: JsonObject) -> tuple[object, ...] | None:
    key = _row_key(event)
    return None if key is None else (event.get("surface"), *key)


def _row_key(event: JsonObject) -> tuple[object, ...] | None:
    kind = str(event.get("type"))
    if kind in _ROW_KEYS:
        row = event.get("row") or {}
        return (kind, *(row.get(name) for name in _ROW_KEYS[kind]))
    if kind == "append":
        return ("message", event.get("sessionId"), event.get("messageId"))
    if kind in _LATEST:
        return (kind, event.get("sessionId"))
    return None


def parts(events: list[JsonObject]) -> Iterable[list[JsonObject]]:
    """The events in pieces of about `PART_BYTES`, at least one piece."""
    piece: list[JsonObject] = []
    size = 0
    for event in events:
        length = len(_encode(event))
        if piece and size + length > PART_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(event)
        size += length
    yield piece
