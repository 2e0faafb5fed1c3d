"""A Replay Workspace: several Cassettes at once, each on its own (replay-runtime §10, R34-R36)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cassettes.core.errors import Conflict, InputRejected
from cassettes.playback.workspace import Workspace
from cassettes.worker.spool import compacted
from tests.making import edit
from tests.samples import CLAUDE, CODEX, cassette_copy, change_data, frames, write_frames

JsonObject = dict[str, Any]


class Watched:
    """A workspace with an imaginary clock."""

    def __init__(self, cassettes: list[Path], folder: Path, **start: Any) -> None:
        folder.mkdir()
        self.workspace = Workspace(cassettes, folder, start)
        self.wall = 0.0
        self.events: list[JsonObject] = []

    def advance(self, milliseconds: float = 0.0) -> None:
        """Let what is due happen."""
        self.wall += milliseconds
        for _ in range(5_000):
            told = self.workspace.advance(self.wall)
            self.events += told
            wake = self.workspace.next_wake(self.wall)
            if not told and (wake is None or wake > 0):
                return

    def last(self, kind: str, surface: int) -> JsonObject:
        """The newest event of a kind of one Surface."""
        return next(one for one in reversed(self.events) if one["type"] == kind and one["surface"] == surface)


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """A Claude Code Cassette, one with an outbound frame that differs, and a Codex Cassette."""
    broken = cassette_copy("codex-rollout-approvals", tmp_path)
    tape = frames(broken)
    first = next(one for one in tape if one["kind"] == "outbound")
    change_data(first, lambda data: data.replace(b"reprise", b"another"))
    write_frames(broken, tape)
    return [cassette_copy(CLAUDE, tmp_path), broken, cassette_copy(CODEX, tmp_path)]


@pytest.fixture
def watched(three: list[Path], tmp_path: Path) -> Iterator[Watched]:
    """The three side by side, as fast as it goes."""
    made = Watched(three, tmp_path / "worker", speed=0)
    yield made
    made.workspace.close()


def test_one_failure_leaves_the_others_to_their_verdict(watched: Watched) -> None:
    watched.advance()
    assert [watched.last("verification", number)["verdict"] for number in (0, 2)] == ["equal", "equal"]
    assert watched.last("failed", 1)["error"]["code"] == "outbound_mismatch"
    assert watched.last("playback", 1)["phase"] == "failed"


def test_a_control_is_for_one_surface_or_for_all(three: list[Path], tmp_path: Path) -> None:
    watched = Watched(three[::2], tmp_path / "worker", paused=True)
    watched.advance()
    watched.workspace.control({"command": "play", "surface": 1})
    watched.advance(500)
    assert [watched.last("playback", number)["paused"] for number in (0, 1)] == [True, False]
    watched.workspace.control({"command": "speed", "value": 64})
    watched.advance(500)
    assert [watched.last("playback", number)["speed"] for number in (0, 1)] == [64, 64]
    watched.workspace.close()


def test_going_back_begins_one_surface_anew_and_leaves_the_other(three: list[Path], tmp_path: Path) -> None:
    watched = Watched(three[::2], tmp_path / "worker", speed=0)
    watched.advance()
    before = len(watched.events)
    watched.workspace.control({"command": "seek", "checkpoint": 3, "surface": 0})
    watched.advance()
    fresh = watched.events[before:]
    assert fresh[0] == {"type": "reset", "surface": 0}
    assert {event["surface"] for event in fresh} == {0}
    assert max(event["index"] for event in fresh if event["type"] == "checkpoint") == 3
    late = compacted(watched.events)
    first_of_0 = next(event for event in late if event["surface"] == 0)
    assert first_of_0["type"] == "reset"
    assert any(event["type"] == "verification" and event["surface"] == 1 for event in late)
    assert not any(event["type"] == "verification" and event["surface"] == 0 for event in late)
    watched.workspace.close()


def test_the_same_cassette_or_root_twice_is_refused_before_anything_starts(three: list[Path], tmp_path: Path) -> None:
    for number, twin in enumerate((three[0], cassette_copy(CLAUDE, tmp_path / "twin"))):
        if number:
            edit(twin, "cassette.json", lambda value: value.update(id="another"))
        with pytest.raises(Conflict) as refused:
            Watched([three[0], twin], tmp_path / f"worker-{number}")
        assert refused.value.code == "workspace_duplicate"


def test_a_workspace_has_one_to_eight_surfaces(three: list[Path], tmp_path: Path) -> None:
    for number, cassettes in enumerate(([], three * 3)):
        with pytest.raises(InputRejected) as refused:
            Watched(cassettes, tmp_path / f"worker-{number}")
        assert refused.value.code == "workspace_size"


@pytest.mark.parametrize("surface", [-1, 2, "0", 1.0, True])
def test_a_control_for_a_surface_that_is_not_there_is_refused(surface: Any, three: list[Path], tmp_path: Path) -> None:
    watched = Watched(three[::2], tmp_path / "worker", paused=True)
    with pytest.raises(InputRejected) as refused:
        watched.workspace.control({"command": "play", "surface": surface})
    assert refused.value.code == "control_invalid"
    watched.workspace.close()
