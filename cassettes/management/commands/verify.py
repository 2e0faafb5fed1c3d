"""`manage.py verify PATH|ID…`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cassettes.core.errors import RepriseError
from cassettes.management import verifying
from cassettes.management.verifying import Verified
from cassettes.viewing.launcher import LAUNCHER

JsonObject = dict[str, Any]
_COLUMNS = (TextColumn("Verifying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
_SHOWN_TYPES = 15


class Command(BaseCommand):
    """Verifies Cassettes."""

    help = (
        "Verify Cassettes (folder, archive or id): the contract first, then a replay at full speed. "
        "Exits 0 when all are accepted, 1 when one is rejected, 2 when one is not there."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sources", nargs="+", metavar="PATH|ID")
        parser.add_argument("--static", action="store_true", help="check the contract only, do not replay")
        parser.add_argument("--size", action="store_true", help="tell where the bytes are")
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")
        parser.add_argument("--junit", type=Path, metavar="FILE", help="write a JUnit report as well")

    def handle(self, *args: Any, **options: Any) -> None:
        outcomes: list[Verified] = []
        bar = Progress(*_COLUMNS, console=Console(stderr=True), transient=True, disable=len(options["sources"]) < 2)
        try:
            with bar:
                task = bar.add_task("", total=len(options["sources"]))
                told = verifying.verify_all(options["sources"], static_only=options["static"], size=options["size"])
                for outcome in told:
                    outcomes.append(outcome)
                    bar.advance(task)
                    self._tell(outcome, as_json=options["json"])
        finally:
            LAUNCHER.close()
        if options["junit"] is not None:
            self._junit(outcomes, options["junit"])
        status = verifying.exit_status(outcomes)
        if status:
            raise CommandError(verifying.summary(outcomes), returncode=status)
        if not options["json"]:
            self.stdout.write(verifying.summary(outcomes))

    def _tell(self, outcome: Verified, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(outcome.as_dict()))
            return
        self.stdout.write(verifying.line(outcome))
        if outcome.size is not None:
            console = Console(file=cast(IO[str], self.stdout), width=110)
            for table in size_tables(outcome.size):
                console.print(table, "")

    @staticmethod
    def _junit(outcomes: list[Verified], target: Path) -> None:
        try:
            verifying.write_junit(outcomes, target)
        except RepriseError as error:
            raise CommandError(str(error), returncode=2) from None


def size_tables(size: JsonObject) -> list[Table]:
    """Where the bytes are, as tables for a terminal."""
    files = _table("File", "Bytes")
    for file in size["files"]:
        files.add_row(file["name"], f"{file['bytes']:,}")
    tables = [files]
    for title, key in (("Connection", "connections"), ("Frame kind", "kinds"), ("Message type", "messageTypes")):
        table = _table(title, "Count", "Bytes on disk", "Payload bytes")
        for row in size[key][:_SHOWN_TYPES]:
            table.add_row(row["name"], f"{row['count']:,}", f"{row['storedBytes']:,}", f"{row['payloadBytes']:,}")
        tables.append(table)
    largest = _table("Largest frames", "Line", "Bytes on disk")
    for frame in size["largestFrames"]:
        name = f"{frame['connectionId']} {frame['kind']} {frame['messageType']}"
        largest.add_row(name, str(frame["line"]), f"{frame['storedBytes']:,}")
    return [*tables, largest]


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
