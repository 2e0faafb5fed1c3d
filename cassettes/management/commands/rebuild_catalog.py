"""`manage.py rebuild_catalog`"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cassettes import catalog


class Command(BaseCommand):
    """Makes the catalog again."""

    help = "Make every row of the catalog again from the artifacts, and drop the rows that have none."

    def handle(self, *args: Any, **options: Any) -> None:
        result = catalog.rebuild()
        self.stdout.write(f"{len(result.kept)} Cassettes, {len(result.removed)} rows without an artifact removed")
        for broken in result.broken:
            self.stderr.write(f"{broken['cassetteId']}: {broken['code']}: {broken['message']}")
        if result.broken:
            raise CommandError(f"{len(result.broken)} artifacts could not be read.", returncode=1)
