"""The playback clock of one Surface: both timelines run on it (replay-runtime §8.1)."""

from __future__ import annotations

from cassettes.core.errors import InputRejected

SLOWEST, FASTEST = 0.25, 64.0
UNBOUNDED = 0.0  # as a speed: nothing waits


class PlaybackClock:
    """Playback time in milliseconds. It grows with wall time × speed while it is neither paused nor unbounded.

    The clock is told the wall time (`tick`); it never reads one.
    """

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.speed = 1.0
        self.paused = False
        self._wall: float | None = None

    def tick(self, wall_ms: float) -> None:
        """Fold in the wall time that passed since the last call."""
        if self._wall is not None and not self.paused and self.speed:
            self.elapsed += max(0.0, wall_ms - self._wall) * self.speed
        self._wall = wall_ms

    def set_speed(self, speed: float) -> None:
        """Change the speed at once; `speed_unsupported` outside 0.25–64 (0 = unbounded)."""
        if speed != UNBOUNDED and not SLOWEST <= speed <= FASTEST:
            raise InputRejected(
                f"speed {speed:g} is not supported",
                code="speed_unsupported",
                hint=f"use a speed from {SLOWEST} to {FASTEST:g}, or 0 for as fast as possible",
            )
        self.speed = speed

    def jump(self, elapsed: float) -> None:
        """Move forward to `elapsed`; the clock never goes back."""
        self.elapsed = max(self.elapsed, elapsed)

    def wall_until(self, due: float) -> float:
        """Wall milliseconds until playback time `due`, at the present speed."""
        if not self.speed:
            return 0.0
        return max(0.0, due - self.elapsed) / self.speed
