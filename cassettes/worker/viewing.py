"""A worker that shows a Replay Workspace: it plays, tells what happens in batches, and hears controls."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from cassettes.core.errors import RepriseError
from cassettes.playback.presentation import Presentation
from cassettes.playback.workspace import Workspace
from cassettes.worker.spool import Spool, compacted, parts
from cassettes.worker.wire import Wire

JsonObject = dict[str, Any]

BATCH_MS = 16.0  # one display frame: no viewer needs more


class ViewingWorker:
    """Runs one generation of one viewing until it is closed or nobody is at the other end."""

    def __init__(self, wire: Wire, request: JsonObject, folder: Path) -> None:
        self._wire = wire
        self._generation = int(request["generation"])
        self._spool = Spool(folder / "spool.jsonl")
        cassettes = [Path(one) for one in request["cassettes"]]
        start = request.get("start") or {}
        self._presentation: Presentation | Workspace
        if len(cassettes) == 1:
            self._presentation = Presentation(cassettes[0], folder, start)
        else:
            self._presentation = Workspace(cassettes, folder, start)
        self._pending: list[JsonObject] = []
        self._sent_at = -BATCH_MS
        self._closed = False

    def run(self) -> None:
        """Play until closed. A broken artifact is told as `failed`; it does not raise."""
        try:
            while not (self._closed or self._wire.closed):
                self._advance()
                self._flush()
                for message in self._wire.receive(self._wait_seconds()):
                    self._handle(message)
        finally:
            self._presentation.close()
            self._spool.close()

    def _advance(self) -> None:
        self._pending += self._presentation.advance(_wall_ms())

    def _flush(self) -> None:
        if self._pending and _wall_ms() - self._sent_at >= BATCH_MS:
            events, self._pending = compacted(self._pending), []
            number = self._spool.add(events)
            self._sent_at = _wall_ms()
            self._wire.send({"kind": "batch", "generation": self._generation, "seq": number, "events": events})

    def _wait_seconds(self) -> float | None:
        wake = self._presentation.next_wake(_wall_ms())
        if self._pending:
            left = max(0.0, BATCH_MS - (_wall_ms() - self._sent_at)) / 1000
            return left if wake is None else min(wake, left)
        return wake

    def _handle(self, message: JsonObject) -> None:
        kind = message.get("kind")
        if kind == "close":
            self._closed = True
        elif kind == "catch-up":
            self._catch_up(message)
        elif kind == "control":
            self._control(message)

    def _control(self, message: JsonObject) -> None:
        try:
            shown = self._presentation
            start = shown.rewind(message) if isinstance(shown, Presentation) else None
            if start is not None:
                self._wire.send({"kind": "rewind", "start": start})
            else:
                shown.control(message)
        except RepriseError as refused:
            self._wire.send({"kind": "refused", "client": message.get("client"), "error": refused.as_dict()})

    def _catch_up(self, message: JsonObject) -> None:
        after = int(message.get("after") or 0)
        to = self._spool.last
        pieces = list(parts(self._spool.events(after, to)))
        for number, events in enumerate(pieces, start=1):
            done = number == len(pieces)
            batch = {
                "kind": "batch",
                "generation": self._generation,
                "from": after + 1,
                "seq": to if done else after,  # only the last piece moves the viewer on
                "events": events,
            }
            self._wire.send({"kind": "caught-up", "request": message.get("request"), "done": done, "batch": batch})


def _wall_ms() -> float:
    return time.monotonic() * 1000
