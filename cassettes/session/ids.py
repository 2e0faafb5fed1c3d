"""Fresh identities of one run."""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.UUID("5b0f7f0e-3c52-4f0e-9a59-6d1f6b1f6c11")


class SeededIds:
    """Long unique ids that are the same in every run with the same seed (replay-state trap T3)."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0

    def new(self, kind: str) -> str:
        """The next id; `kind` only helps a reader."""
        self._count += 1
        return f"{kind}-{uuid.uuid5(_NAMESPACE, f'{self._seed}:{self._count}')}"
