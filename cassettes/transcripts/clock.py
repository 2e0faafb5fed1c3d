"""Times of transcripts."""

from __future__ import annotations

from datetime import UTC, datetime


def epoch_ms(value: object) -> int:
    """Epoch milliseconds of an ISO 8601 text, or of a number of seconds or milliseconds; 0 where unreadable."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        if not 0 < value < 1e17:
            return 0
        if value < 1e11:
            return int(value * 1000)
        return int(value) if value < 1e14 else int(value / 1000)
    if not isinstance(value, str) or not value:
        return 0
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        seconds = int(moment.timestamp() // 1)
    except (OverflowError, ValueError):
        return 0
    found = seconds * 1000 + moment.microsecond // 1000
    return found if found > 0 else 0


class Forward:
    """A time that never goes back (transcript-formats §3.7): earlier and missing times become the latest one."""

    def __init__(self, start: int = 0) -> None:
        self.now = start
        self.steps_back = 0

    def at(self, time: int) -> int:
        """The playback time of something recorded at `time`."""
        if time and time < self.now:
            self.steps_back += 1
        self.now = max(self.now, time)
        return self.now
