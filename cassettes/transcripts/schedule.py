"""A virtual clock: things that happen at epoch milliseconds of the transcript, one after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable

FRAMES = 0  # what the provider writes
PERSON = 1  # what the person does
AFTER = 2  # what must happen when nobody else did it


class Schedule:
    """Due actions in order of time; at one time by rank, then in the order they were planned."""

    def __init__(self, start: int) -> None:
        self._now = start
        self._due: list[tuple[int, int, int, Callable[[], None]]] = []
        self._count = 0

    def now(self) -> int:
        """The virtual time, epoch ms."""
        return self._now

    @property
    def next_time(self) -> int | None:
        """When the next action is due, or None."""
        return self._due[0][0] if self._due else None

    def at(self, time: int, action: Callable[[], None], rank: int = FRAMES) -> None:
        """Plan an action; a time that is over means now."""
        self._count += 1
        heapq.heappush(self._due, (max(time, self._now), rank, self._count, action))

    def advance(self, time: int) -> None:
        """Move the clock to `time`, which must not skip a due action."""
        self._now = max(self._now, time)

    def run_next(self) -> None:
        """Move to the next due action and do it."""
        time, _, _, action = heapq.heappop(self._due)
        self._now = time
        action()
