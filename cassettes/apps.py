"""The app."""

from __future__ import annotations

from django.apps import AppConfig


class CassettesConfig(AppConfig):
    """The one app of the product."""

    name = "cassettes"
    verbose_name = "Reprise"
