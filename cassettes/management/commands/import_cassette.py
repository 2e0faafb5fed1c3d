"""`manage.py import_cassette FILE…`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from cassettes.management.importing import add_arguments, import_files


class Command(BaseCommand):
    """Imports Cassette archives."""

    help = "Import Cassettes from archives (.zip, .tar, .tar.gz, .tar.zst)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        import_files(self, options)
