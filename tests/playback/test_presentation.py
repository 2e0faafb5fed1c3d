"""Controls of a viewing, without a process: what each makes of the replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cassettes.core.errors import InputRejected
from cassettes.playback.presentation import Presentation
from tests.samples import CODEX, cassette_copy

JsonObject = dict[str, Any]


class Watcher:
    """Somebody who watches a Cassette with a clock of their own."""

    def __init__(self, cassette: Path, folder: Path, **start: Any) -> None:
        folder.mkdir()
        self.presentation = Presentation(cassette, folder, start)
        self.wall = 0.0
        self.rows: dict[tuple[str, ...], JsonObject] = {}
        self.advance(0)

    def advance(self, milliseconds: float) -> None:
        """Let wall time go by, and everything that is due happen."""
        self.wall += milliseconds
        for _ in range(1000):
            events = self.presentation.advance(self.wall)
            for event in events:
                self._see(event)
            wake = self.presentation.next_wake(self.wall)
            if not events and (wake is None or wake > 0):
                return

    def _see(self, event: JsonObject) -> None:
        if event["type"] in ("message", "turn"):
            row = event["row"]
            self.rows[event["type"], row["sessionId"] if "sessionId" in row else row["session_id"], row["id"]] = row
        elif event["type"] == "append":
            self.rows["append", event["messageId"], str(event["version"])] = event
        elif event["type"] == "playback":
            self.playback = event

    def control(self, command: str, **members: Any) -> JsonObject | None:
        """A control; gives how a new generation has to start, when it leads back."""
        message = {"command": command, **members}
        back = self.presentation.rewind(message)
        if back is None:
            self.presentation.control(message)
            self.advance(0)
        return back


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """A Cassette of a small coding task."""
    return cassette_copy(CODEX, tmp_path)


@pytest.fixture
def watcher(cassette: Path, tmp_path: Path) -> Iterator[Watcher]:
    """Somebody who opened it, paused."""
    watching = Watcher(cassette, tmp_path / "worker", paused=True)
    yield watching
    watching.presentation.close()


def test_a_step_goes_on_to_the_next_moment_that_changes_something(watcher: Watcher) -> None:
    seen = []
    for _ in range(8):
        before = dict(watcher.rows)
        watcher.control("step", to="next")
        assert watcher.rows != before
        assert watcher.playback["paused"]
        seen.append(watcher.playback["elapsedMs"])
    assert seen == sorted(seen)


def test_a_step_back_shows_what_was_there_one_step_earlier(watcher: Watcher, cassette: Path, tmp_path: Path) -> None:
    for _ in range(5):
        watcher.control("step", to="next")
    rows, elapsed = dict(watcher.rows), watcher.playback["elapsedMs"]
    watcher.control("step", to="next")
    start = watcher.control("step", to="previous")
    assert start is not None
    again = Watcher(cassette, tmp_path / "again", **start)
    assert again.playback["elapsedMs"] == elapsed
    assert again.playback["paused"]
    assert {key for key in again.rows if key[0] != "append"} == {key for key in rows if key[0] != "append"}
    again.presentation.close()


def test_steps_to_the_end_finish_the_replay(watcher: Watcher) -> None:
    for _ in range(10_000):
        if watcher.playback["phase"] == "complete":
            break
        watcher.control("step", to="next")
    assert watcher.playback["phase"] == "complete"
    watcher.control("step", to="next")
    assert watcher.playback["timing"] == "realtime"


@pytest.mark.parametrize(
    "message",
    [
        {"command": "step", "to": "sideways"},
        {"command": "fly"},
        {"command": None},
        {"command": "seek", "atMs": "soon"},
        {"command": "seek", "checkpoint": 10_000},
        {"command": "seek", "atMs": float("nan")},
        {"command": "speed", "value": -1},
        {"command": "mode", "value": "reverse"},
    ],
)
def test_a_control_that_cannot_be_understood_changes_nothing(watcher: Watcher, message: JsonObject) -> None:
    before = watcher.playback
    with pytest.raises(InputRejected) as refused:
        watcher.control(**message)
    assert refused.value.code in ("control_invalid", "speed_unsupported")
    watcher.advance(10)
    assert watcher.playback == before
