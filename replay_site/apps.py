"""How static files are collected."""

from __future__ import annotations

from django.contrib.staticfiles.apps import StaticFilesConfig


class Static(StaticFilesConfig):
    """Leaves the viewer's sources out: only what was built is served."""

    ignore_patterns = ["CVS", ".*", "*~", "*.ts", "*.mjs", "*.json", "*.html", "*.md"]  # noqa: RUF012
