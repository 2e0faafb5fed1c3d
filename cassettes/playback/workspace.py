"""A Replay Workspace: one to eight Cassettes in one viewing, each a Surface of its own (replay-runtime §10).

Every Cassette is loaded and validated before anything starts. Playback, failure and verification are independent: what
stops one leaves the others going. Events carry the number of their Surface. Going back discards that one Surface and
starts it anew, fast-forwarded; nothing is ever rewound.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cassettes.core.compare import merge_states
from cassettes.core.errors import Conflict, InputRejected, RepriseError
from cassettes.playback.presentation import Presentation

JsonObject = dict[str, Any]

MAX_SURFACES = 8


class Workspace:
    """The Surfaces of one viewing. Calls are those of a `Presentation`; controls may name one `surface`."""

    def __init__(self, cassettes: Sequence[Path], folder: Path, start: JsonObject) -> None:
        if not 1 <= len(cassettes) <= MAX_SURFACES:
            raise InputRejected(
                f"A workspace shows 1 to {MAX_SURFACES} Cassettes.", code="workspace_size", found=len(cassettes)
            )
        self._cassettes = list(cassettes)
        self._folder = folder
        self._made = 0
        self._resets: list[JsonObject] = []
        self.surfaces: list[Presentation] = []
        try:
            for path in cassettes:
                self.surfaces.append(self._prepared(path, start))
            self._check_batch()
        except BaseException:
            self.close()
            raise

    def _prepared(self, path: Path, start: JsonObject) -> Presentation:
        self._made += 1
        folder = self._folder / f"surface-{self._made}"
        folder.mkdir()
        return Presentation(path, folder, start)

    def _check_batch(self) -> None:
        """Each Cassette and each root once, and no contradiction between what they start from."""
        for name, values in (
            ("Cassette", [one.cassette.manifest.id for one in self.surfaces]),
            ("root session", [one.cassette.manifest.root_agent_session_id for one in self.surfaces]),
        ):
            if len(set(values)) != len(values):
                raise Conflict(f"Two Cassettes of the workspace have the same {name}.", code="workspace_duplicate")
        merge_states([one.surface.initial for one in self.surfaces if one.surface.initial is not None])

    def control(self, message: JsonObject) -> None:
        """A control for one Surface, or for all. The first refusal is raised after the others have heard it."""
        named = message.get("surface")
        if named is not None and not (type(named) is int and 0 <= named < len(self.surfaces)):
            raise InputRejected(f"there is no surface {named}", code="control_invalid")
        refused: RepriseError | None = None
        for number in range(len(self.surfaces)) if named is None else [named]:
            try:
                self._control_one(number, message)
            except RepriseError as error:
                refused = refused or error
        if refused is not None:
            raise refused

    def _control_one(self, number: int, message: JsonObject) -> None:
        surface = self.surfaces[number]
        start = surface.rewind(message)
        if start is None:
            surface.control(message)
            return
        surface.close()
        self.surfaces[number] = self._prepared(self._cassettes[number], start)
        self._resets.append({"type": "reset", "surface": number})

    def advance(self, wall_ms: float) -> list[JsonObject]:
        """Do everything that is due on every Surface, and return what a viewer has to hear."""
        events, self._resets = self._resets, []
        for number, surface in enumerate(self.surfaces):
            events += [{**event, "surface": number} for event in surface.advance(wall_ms)]
        return events

    def next_wake(self, wall_ms: float) -> float | None:
        """Seconds until `advance` wants to be called; None: only after a control."""
        if self._resets:
            return 0.0
        wakes = [wake for one in self.surfaces if (wake := one.next_wake(wall_ms)) is not None]
        return min(wakes, default=None)

    def close(self) -> None:
        """Let go of every Surface."""
        for surface in self.surfaces:
            surface.close()
