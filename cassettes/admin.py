"""Django's own administration: accounts, and rows to look at. Cassettes change through their artifacts only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from cassettes.models import Cassette, Recording, ReviewLink, Upload


class _ReadOnly(admin.ModelAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Cassette)
class CassetteAdmin(_ReadOnly):
    """Cassettes."""

    list_display = ("name", "provider", "created_at", "duration", "turns", "tool_calls", "size_bytes")
    search_fields = ("name", "session_title", "id")


@admin.register(Recording)
class RecordingAdmin(_ReadOnly):
    """Recordings."""

    list_display = ("name", "status", "agent_target_id", "created_at", "error_code")
    search_fields = ("name", "id")


@admin.register(ReviewLink)
class ReviewLinkAdmin(_ReadOnly):
    """Review links. They are revoked on the page of their Cassette."""

    list_display = ("label", "cassette", "created_by", "created_at", "expires_at", "revoked_at", "views")
    exclude = ("token_hash",)


@admin.register(Upload)
class UploadAdmin(_ReadOnly):
    """Uploads."""

    list_display = ("filename", "state", "message", "created_by", "created_at")
