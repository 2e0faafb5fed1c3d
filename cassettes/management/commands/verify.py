"""`manage.py verify PATH|ID…`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cassettes import catalog
from cassettes.core.errors import RepriseError
from cassettes.viewing import imports
from cassettes.viewing.launcher import LAUNCHER

JsonObject = dict[str, Any]
_SHOWN = ("source", "verdict", "code", "place", "replay")


class Command(BaseCommand):
    """Verifies Cassettes."""

    help = "Verify Cassettes (folder, archive or id): the contract first, then a replay. Exits 0 when all are accepted."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sources", nargs="+", metavar="PATH|ID")
        parser.add_argument("--static", action="store_true", help="do not replay")
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        rejected = 0
        try:
            for source in options["sources"]:
                outcome = _verified(source, options["static"])
                rejected += outcome["verdict"] != "accept"
                if options["json"]:
                    self.stdout.write(json.dumps({name: outcome[name] for name in _SHOWN}))
                else:
                    self.stdout.write(_line(outcome))
        finally:
            LAUNCHER.close()
        if rejected:
            raise CommandError(f"{rejected} of {len(options['sources'])} rejected.", returncode=1)


def _verified(source: str, static_only: bool) -> JsonObject:
    path = Path(source)
    try:
        if not path.exists():
            path = catalog.artifact_path(source)
        return {"source": source, **imports.run_verify(path, static_only=static_only)}
    except RepriseError as failure:
        error = failure.as_dict()
        told = {"verdict": "reject", "code": error["code"], "place": error["place"], "replay": "not replayed"}
        return {"source": source, **told, "error": error}


def _line(outcome: JsonObject) -> str:
    if outcome["verdict"] == "accept":
        return f"accept  {outcome['source']}: replay {outcome['replay']}"
    error = outcome["error"] or {}
    place = f" ({outcome['place']})" if outcome["place"] else ""
    text = f"reject  {outcome['source']}\n    {outcome['code']}: {error.get('message', '')}{place}"
    if "expected" in error or "found" in error:
        text += f"\n    expected {error.get('expected')}\n    found    {error.get('found')}"
    return text
