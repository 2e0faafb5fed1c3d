"""The verify job: is this a Cassette that keeps its contract, and does it replay?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cassettes.artifacts.archives import import_archive
from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.size_evidence import size_evidence
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import CassetteRejected, RepriseError
from cassettes.playback.headless import replay

JsonObject = dict[str, Any]

STATIC_ONLY = "not replayed"


def verify_cassette(request: JsonObject, folder: Path) -> JsonObject:
    """Verify the folder or archive `request["path"]`, without replay when `request["static"]`.

    `verdict` is `accept` or `reject`; `code` and `place` say why a Cassette was rejected; `replay` is `equal`, the
    first mismatch, or that there was no replay. With `request["size"]` an accepted Cassette's `size` says where its
    bytes are. A refused input is a rejection, never an exception.
    """
    path = Path(request["path"])
    try:
        cassette, cassette_id = _opened(path, folder)
    except RepriseError as refused:
        return _rejected(refused.as_dict(), STATIC_ONLY)
    told: JsonObject = {"cassetteId": cassette_id}
    if request.get("size"):
        told["size"] = size_evidence(CassetteFolder(cassette)).as_dict()
    if request.get("static"):
        return {**_ACCEPTED, "replay": STATIC_ONLY, **told}
    report = replay(cassette, scratch=folder)
    if report.error is not None:
        return {**_rejected(report.error, report.summary), **told, "layers": report.layers}
    return {
        **_ACCEPTED,
        "replay": report.summary,
        **told,
        "layers": report.layers,
        "notAsserted": report.not_asserted,
    }


_ACCEPTED: JsonObject = {"verdict": "accept", "code": "", "place": "", "error": None}


def _opened(path: Path, folder: Path) -> tuple[Path, str]:
    """The folder of the Cassette and its id, after the static verification."""
    if path.is_dir():
        return path, verify_static(path).manifest.id
    if not path.exists():
        raise CassetteRejected("There is no such file or folder.", code="cassette_not_found", found=path.name)
    imported = import_archive(path, ArtifactStore(folder / "verify"))
    return imported.path, imported.cassette_id


def _rejected(error: JsonObject, replayed: str) -> JsonObject:
    return {"verdict": "reject", "code": error["code"], "place": error["place"], "replay": replayed, "error": error}
