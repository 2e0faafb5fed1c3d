"""How static files are collected."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.staticfiles.apps import StaticFilesConfig


class Static(StaticFilesConfig):
    """Leaves the viewer's sources out: only what was built is served."""

    ignore_patterns: ClassVar[list[str]] = ["CVS", ".*", "*~", "*.ts", "*.mjs", "*.json", "*.html", "*.md"]
