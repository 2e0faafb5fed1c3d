"""However a Cassette is watched, the same things happen in the same order, and it verifies `equal`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cassettes.engine.engine import Command, CommandResult
from cassettes.host.model import Commit
from cassettes.playback.presentation import Presentation
from cassettes.session.ports import Unit, UnitEvent
from tests.samples import CLAUDE, CODEX, cassette_copy

JsonObject = dict[str, Any]

WATCHED = [
    CLAUDE,
    CODEX,
    "claude-transcript-interactive",
    "claude-transcript-subagent",
    "claude-transcript-interrupt",
    "codex-rollout-approvals",
    "codex-rollout-interrupt",
    "codex-sessions/rollout-subagent",
]
TIMES = 50


class Witness:
    """Writes down every canonical event. The folder of the worker is the one thing that may differ."""

    def __init__(self, folder: Path) -> None:
        self.seen: list[bytes] = []
        self._folder = str(folder).encode()

    def on_commit(self, commit: Commit) -> None:
        for mutation in commit.mutations:
            row = msgspec.json.encode([type(mutation.value).__name__, msgspec.to_builtins(mutation.value)])
            self.seen.append(row.replace(self._folder, b"<folder>"))

    def on_unit(self, unit: Unit, events: Sequence[UnitEvent], commit: Commit) -> None:
        """Its commit was told."""

    def on_intent(self, intent: JsonObject) -> None:
        self.seen.append(b"intent " + str(intent.get("type")).encode())

    def on_command(self, command: Command) -> None:
        self.seen.append(b"command " + command.type.encode())

    def on_command_result(self, command: Command, result: CommandResult) -> None:
        self.seen.append(b"result " + result.outcome.encode())


class Watching:
    """One generation of a viewing, driven by an imaginary clock."""

    def __init__(self, cassette: Path, folder: Path, start: JsonObject) -> None:
        folder.mkdir()
        self.presentation = Presentation(cassette, folder, start)
        self.witness = Witness(folder)
        self.presentation.surface.session.observe(self.witness)
        self.verdict = ""

    def advance(self, wall: float) -> None:
        """Let what is due happen."""
        for event in self.presentation.advance(wall):
            if event["type"] == "verification":
                self.verdict = event["verdict"]


def watched(cassette: Path, folder: Path, chance: random.Random) -> Watching:
    """Watch to the end with random speeds, pauses and jumps."""
    generation = 0
    watching = Watching(cassette, folder / "0", {"speed": chance.choice([0, 0.25, 1, 64])})
    wall = 0.0
    for turn in range(100_000):
        wall += chance.choice([0, 1, 16, 250, 5_000])
        watching.advance(wall)
        if watching.presentation.finished:
            return watching
        if chance.random() < 0.25 and turn < 200:
            control = _control(watching, chance)
            back = watching.presentation.rewind(control)
            if back is None:
                watching.presentation.control(control)
            elif generation < 3:
                watching.presentation.close()
                generation += 1
                watching = Watching(cassette, folder / str(generation), back)
        elif watching.presentation.clock.paused:
            watching.presentation.control({"command": "play"})
        if turn > 200:
            watching.presentation.control({"command": "speed", "value": 0})
    raise AssertionError("it never ends")


def _control(watching: Watching, chance: random.Random) -> JsonObject:
    presentation = watching.presentation
    controls: list[JsonObject] = [
        {"command": "pause"},
        {"command": "play"},
        {"command": "speed", "value": chance.choice([0, 0.25, 0.5, 1, 4, 64])},
        {"command": "idle-limit", "ms": chance.choice([None, 0, 500])},
        {"command": "mode", "value": chance.choice(["automatic", "manual"])},
        {"command": "next-checkpoint"},
        {"command": "step", "to": chance.choice(["next", "previous"])},
        {"command": "seek", "atMs": chance.uniform(0, 8_000)},
        {"command": "seek", "checkpoint": chance.randrange(len(presentation.surface.plan.checkpoints))},
        {"command": "restart"},
    ]
    return chance.choice(controls)


@pytest.mark.parametrize("stem", WATCHED)
def test_fifty_viewings_see_the_same(stem: str, tmp_path: Path) -> None:
    cassette = cassette_copy(stem, tmp_path)
    plain = Watching(cassette, tmp_path / "plain", {"speed": 0})
    while not plain.presentation.finished:
        plain.advance(0.0)
    assert plain.verdict == "equal"
    assert len(plain.witness.seen) > 20
    for seed in range(TIMES):
        folder = tmp_path / f"seed-{seed}"
        folder.mkdir()
        again = watched(cassette, folder, random.Random(seed))
        assert again.verdict == "equal", f"seed {seed}"
        assert again.witness.seen == plain.witness.seen, f"seed {seed}"
        again.presentation.close()
    plain.presentation.close()
