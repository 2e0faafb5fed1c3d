"""`manage.py export_cassette ID`"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cassettes import catalog
from cassettes.artifacts.archives import FORMATS
from cassettes.core.errors import RepriseError


class Command(BaseCommand):
    """Writes a Cassette as an archive."""

    help = "Export a Cassette as an archive; the same Cassette always gives the same bytes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", metavar="ID")
        parser.add_argument("--format", choices=[one.removeprefix(".") for one in FORMATS], default="zip")
        parser.add_argument("--output", type=Path, help="file to write (default: ID.FORMAT here)")

    def handle(self, *args: Any, **options: Any) -> None:
        target: Path = options["output"] or Path(f"{options['id']}.{options['format']}")
        part = target.with_name(target.name + ".part")
        try:
            with part.open("xb") as out:
                catalog.export(options["id"], f".{options['format']}", out)
            part.replace(target)
        except RepriseError as refused:
            raise CommandError(str(refused)) from refused
        except OSError as error:
            raise CommandError(f"{target}: {error.strerror}") from error
        finally:
            part.unlink(missing_ok=True)
        self.stdout.write(str(target))
