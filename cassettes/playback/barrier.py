"""The provider input barrier of one Surface (provider-tape §11.2)."""

from __future__ import annotations

from collections.abc import Iterable

from cassettes.core.checkpoints import ProviderPosition
from cassettes.core.errors import Place, ReplayFailed
from cassettes.session.ports import Unit

Position = tuple[int, int]  # chunkSeq, unitIndex
_START: Position = (0, 0)


class InputBarrier:
    """Holds each connection at the unit where the next checkpoint stands."""

    def __init__(self) -> None:
        self.handled: dict[str, Position] = {}
        self._targets: dict[str, Position] | None = None

    def install(self, positions: Iterable[ProviderPosition]) -> None:
        """Set new targets. `checkpoint_provider_overshot`, and nothing changed, when one is behind what was handled."""
        targets = {one.connection_id: (one.chunk_seq, one.unit_index) for one in positions}
        for connection_id, handled in self.handled.items():
            target = targets.get(connection_id)
            if target is None or target < handled:
                raise _overshot(connection_id, target or _START, handled)
        self._targets = targets

    def clear(self) -> None:
        """Let every connection run."""
        self._targets = None

    def allows(self, unit: Unit) -> bool:
        """May this unit be handled now? False = the connection stands at its target."""
        if self._targets is None:
            return True
        position = (unit.chunk_seq, unit.unit_index)
        target = self._targets.get(unit.connection_id)
        handled = self.handled.get(unit.connection_id, _START)
        if target is not None and handled == target:
            return False
        if target is None or position > target:
            raise _overshot(unit.connection_id, target or _START, position)
        return True

    def complete(self, unit: Unit) -> None:
        """A unit was handled with everything it caused."""
        position = (unit.chunk_seq, unit.unit_index)
        handled = self.handled.get(unit.connection_id, _START)
        if position <= handled:
            raise _overshot(unit.connection_id, handled, position)
        self.handled[unit.connection_id] = position

    def missing(self) -> dict[str, tuple[Position, Position]]:
        """Connections that are not at their target yet: (handled, target)."""
        targets = self._targets or {}
        positions = {name: (self.handled.get(name, _START), target) for name, target in targets.items()}
        return {name: pair for name, pair in positions.items() if pair[0] != pair[1]}


def _overshot(connection_id: str, target: Position, position: Position) -> ReplayFailed:
    return ReplayFailed(
        f"{connection_id} passed the unit where the checkpoint stands",
        code="checkpoint_provider_overshot",
        place=Place(file="provider/frames.jsonl", path=f"{connection_id} chunk {position[0]}"),
        expected=f"unit {target[0]}/{target[1]}",
        found=f"unit {position[0]}/{position[1]}",
    )
