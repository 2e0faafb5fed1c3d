"""`manage.py import_transcript FILE…`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from cassettes.management.importing import add_arguments, import_files


class Command(BaseCommand):
    """Makes Cassettes of transcripts."""

    help = "Record transcripts of Claude Code (projects/**/*.jsonl) or Codex (rollout-*.jsonl) as Cassettes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        import_files(self, options)
