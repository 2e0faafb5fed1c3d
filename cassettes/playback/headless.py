"""A replay at full speed with nobody watching: what `verify` and the importer run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.core.errors import RepriseError
from cassettes.playback.report import layers
from cassettes.playback.surface import Surface

JsonObject = dict[str, Any]


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Outcome of a headless replay. `verdict` is `equal`, or the code of what went wrong."""

    cassette_id: str
    verdict: str
    error: JsonObject | None = None
    layers: list[JsonObject] = msgspec.field(default_factory=list)
    not_asserted: list[str] = msgspec.field(default_factory=list)

    @property
    def equal(self) -> bool:
        return self.verdict == "equal"

    @property
    def summary(self) -> str:
        """`equal`, or the first mismatch in one line."""
        if self.error is None:
            return self.verdict
        place = self.error.get("place")
        return f"{self.verdict}: {self.error['message']}" + (f" ({place})" if place else "")


def replay(path: Path, *, seed: str = "headless", scratch: Path | None = None) -> ReplayReport:
    """Replay the Cassette in `path` in a temporary folder (below `scratch`). Failures are in the report, never raised.

    The Cassette must have passed the static verification; an artifact that cannot be read is a failure too.
    """
    with tempfile.TemporaryDirectory(prefix="reprise-replay-", dir=scratch) as folder:
        try:
            cassette = CassetteFolder(path)
            surface = Surface(cassette, Path(folder), seed=seed)
        except RepriseError as failure:
            return ReplayReport(cassette_id="", verdict=failure.code, error=failure.as_dict())
        try:
            surface.open()
            surface.run()
        finally:
            surface.close()
        failure_found = surface.failure
        return ReplayReport(
            cassette_id=cassette.manifest.id,
            verdict="equal" if failure_found is None else failure_found.code,
            error=None if failure_found is None else failure_found.as_dict(),
            layers=layers(surface),
            not_asserted=surface.transport.not_asserted(),
        )
