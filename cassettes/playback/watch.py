"""The observer that feeds a Surface's verification from its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cassettes.engine.engine import Command, CommandResult
from cassettes.host.model import Commit, SessionRow
from cassettes.playback.checkpoints import CheckpointVerifier
from cassettes.playback.effects import EffectVerifier
from cassettes.session.ports import Unit, UnitEvent

JsonObject = dict[str, Any]


class SurfaceObserver:
    """Passes commands to the effect verifier and units to the checkpoint verifier."""

    def __init__(self, effects: EffectVerifier, checkpoints: CheckpointVerifier) -> None:
        self._effects = effects
        self._checkpoints = checkpoints

    def on_intent(self, intent: JsonObject) -> None:
        """Nothing to verify: intents come from the recording."""

    def on_command(self, command: Command) -> None:
        self._effects.on_command(command)

    def on_command_result(self, command: Command, result: CommandResult) -> None:
        self._effects.on_command_result(command, result)

    def on_commit(self, commit: Commit) -> None:
        for mutation in commit.mutations:
            if mutation.change == "insert" and isinstance(mutation.value, SessionRow):
                self._effects.add_session(mutation.value.id)

    def on_unit(self, unit: Unit, events: Sequence[UnitEvent], commit: Commit) -> None:
        self._checkpoints.on_unit(unit, events)
