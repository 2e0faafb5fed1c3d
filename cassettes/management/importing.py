"""What the two import commands share: import files one after the other and tell what came out."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cassettes import intake
from cassettes.core.errors import InputRejected, Place, RepriseError
from cassettes.viewing.launcher import LAUNCHER

JsonObject = dict[str, Any]


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of an import."""
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("--name", default="", help="display name of the Cassette (one FILE only)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each Cassette")
    parser.add_argument(
        "--secrets",
        choices=("publish", "redact", "refuse"),
        default="publish",
        help="what to do where secrets are found: publish with a warning (default), publish a redacted copy, refuse",
    )


def import_files(command: BaseCommand, options: JsonObject) -> None:
    """Import every file; the exit status tells whether everything was published and verifies."""
    if options["name"] and len(options["files"]) > 1:
        raise CommandError("--name goes with one FILE only.")
    failures = 0
    try:
        for source in options["files"]:
            for outcome in outcomes(source, options["name"], options["secrets"]):
                failures += outcome["replay"] != "equal"
                command.stdout.write(json.dumps(outcome) if options["json"] else _line(outcome))
    finally:
        LAUNCHER.close()
    if failures:
        raise CommandError(f"{failures} of the sources did not become a Cassette that verifies.", returncode=1)


def outcomes(source: Path, name: str = "", policy: str = "publish") -> Iterator[JsonObject]:
    """Import one file: an object for each Cassette made, or one with the `error` that made it impossible."""
    try:
        if not source.is_file():
            raise InputRejected("There is no such file.", code="source_missing", place=Place(file=source.name))
        result = intake.take_in(source, name=name or None, policy=policy)
    except RepriseError as refused:
        error = refused.as_dict()
        yield {
            "source": str(source),
            "cassetteId": None,
            "records": 0,
            "entities": 0,
            "unrecognised": 0,
            "replay": error["code"],
            "error": error,
        }
        return
    for made in result["cassettes"]:
        names = ("cassetteId", "records", "entities", "unrecognised", "replay", "created", "secrets")
        yield {"source": str(source), **{one: made[one] for one in names}, "report": result["report"]}


def _line(outcome: JsonObject) -> str:
    source = outcome["source"]
    error = outcome.get("error")
    if error is not None:
        place = f" ({error['place']})" if error.get("place") else ""
        hint = f"\n    {error['hint']}" if error.get("hint") else ""
        return f"refused   {source}\n    {error['code']}: {error['message']}{place}{hint}"
    word = "imported" if outcome["created"] else "unchanged"
    text = f"{word:9} {source} → {outcome['cassetteId']}: {outcome['records']} records, {outcome['entities']} entities"
    if outcome["unrecognised"]:
        text += f", {outcome['unrecognised']} not recognised"
    text += f"; replay {outcome['replay']}"
    for finding in outcome["secrets"]:
        text += (
            f"\n    secret: {finding['kind']}, {finding['masked']}, {finding['count']} times: {finding['places'][0]}"
        )
    for kind, count in ((outcome["report"] or {}).get("unknown") or {}).items():
        text += f"\n    not recognised: {kind} ({count})"
    for problem in (outcome["report"] or {}).get("problems") or []:
        text += f"\n    {problem['file']}, line {problem['line']}: {problem['kind']} {problem['detail']}"
    return text
