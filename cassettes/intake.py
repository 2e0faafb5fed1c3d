"""A file becomes Cassettes: imported aside, searched for secrets, then published, redacted, held back or discarded.

What lies aside is an artifact store of its own, so nothing that an admin has not decided on is in the catalog.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Any

from django.conf import settings

from cassettes import catalog
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import InputRejected
from cassettes.viewing import imports

JsonObject = dict[str, Any]

POLICIES = ("publish", "hold", "redact", "refuse")
"""What to do with a Cassette in which secrets were found."""


def aside(name: str = "") -> Path:
    """The folder of what lies aside under a name, or under a fresh one."""
    return Path(settings.REPRISE_HOME) / "held" / (name or secrets.token_hex(16))


def take_in(
    source: Path,
    *,
    name: str | None = None,
    policy: str = "publish",
    held: Path | None = None,
    on_progress: imports.OnProgress | None = None,
) -> JsonObject:
    """Import a transcript or an archive in a worker. Gives `cassettes` and the `report` of the import.

    Each Cassette has `secrets` (the findings), `held` when it waits for a decision in the folder `held`, and what the
    import job tells. `secrets_found` when the policy refuses it.
    """
    folder = held or aside()
    keep = False
    try:
        result = imports.run_import(source, folder, name=name, on_progress=on_progress)
        for made in result["cassettes"]:
            made["held"] = bool(made["secrets"]) and policy == "hold"
            keep = keep or made["held"]
            if made["secrets"] and policy == "refuse":
                raise _refused(made)
            if made["secrets"] and policy == "redact":
                redact(folder, made)
            elif not made["held"]:
                publish(folder, made)
        return {"cassettes": result["cassettes"], "report": result.get("report")}
    finally:
        if not keep:
            discard(folder)


def publish(folder: Path, made: JsonObject) -> None:
    """Publish a Cassette that lies aside, as it is."""
    _adopt(ArtifactStore(folder).folder(made["cassetteId"]).path, made)


def redact(folder: Path, made: JsonObject) -> None:
    """Publish the redacted copy of a Cassette that lies aside; `made` then tells of the copy."""
    target = folder / "redacted"
    told = imports.run_redact(ArtifactStore(folder).folder(made["cassetteId"]).path, target)
    made.update(redactedFrom=made["cassetteId"], cassetteId=told["cassetteId"], replay=told["replay"])
    _adopt(target, made)


def _adopt(tree: Path, made: JsonObject) -> None:
    imported = catalog.store().adopt(tree)
    made["held"] = False
    made["created"] = not imported.already_present
    add = catalog.publish_row if made["created"] else catalog.add_from_artifact
    add(imported.cassette_id)


def discard(folder: Path) -> None:
    """Remove what lies aside."""
    shutil.rmtree(folder, ignore_errors=True)


def _refused(made: JsonObject) -> InputRejected:
    first = made["secrets"][0]
    return InputRejected(
        f"{len(made['secrets'])} secrets were found, the first of them: {first['kind']}, {first['masked']}.",
        code="secrets_found",
        found=first["places"][0] if first["places"] else None,
        hint="Publish it anyway, or a redacted copy.",
    )
