"""The catalog's rows. A Cassette row only repeats what its artifact says; it can be made again from it at any time."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.utils import timezone


class Cassette(models.Model):
    """A published Cassette, as its list shows it."""

    id = models.CharField(max_length=200, primary_key=True)
    name = models.CharField(max_length=120)
    session_title = models.CharField(max_length=400, blank=True)
    provider = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True)
    agent_target_id = models.CharField(max_length=200)
    mode = models.CharField(max_length=40)
    created_at = models.DateTimeField()
    duration_ms = models.BigIntegerField()
    turns = models.PositiveIntegerField()
    tool_calls = models.PositiveIntegerField()
    checkpoints = models.PositiveIntegerField()
    size_bytes = models.BigIntegerField()
    manifest_sha256 = models.CharField(max_length=64)
    redacted_from = models.CharField(max_length=200, blank=True)  # the Cassette of which this is a redacted copy
    added_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at", "id")
        indexes = (models.Index(fields=["-created_at"]), models.Index(fields=["name"]))

    def __str__(self) -> str:
        return self.name

    @property
    def duration(self) -> str:
        """The recorded time as people write it."""
        return duration_text(self.duration_ms)

    @property
    def provider_name(self) -> str:
        """The provider as people call it."""
        return PROVIDER_NAMES.get(self.provider, self.provider or "unknown")


PROVIDER_NAMES = {"codex": "Codex", "claude-code": "Claude Code", "acp": "ACP agent"}


def duration_text(milliseconds: int) -> str:
    """`0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f} s"
    seconds = round(milliseconds / 1000)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


class Recording(models.Model):
    """A capture task (spec: cassette-v7 §13.11). One that is complete stands for its Cassette."""

    id = models.CharField(max_length=200, primary_key=True)
    name = models.CharField(max_length=120)
    cassette = models.OneToOneField(Cassette, on_delete=models.CASCADE, null=True, related_name="recording")
    agent_target_id = models.CharField(max_length=200)
    mode = models.CharField(max_length=40)
    root_agent_session_id = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=20)  # core.recording names them
    error_code = models.CharField(max_length=100, blank=True)
    error_message = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return self.name


class ReviewLink(models.Model):
    """The right to watch one Cassette without an account. Only a hash of its token is kept."""

    cassette = models.ForeignKey(Cassette, on_delete=models.CASCADE, related_name="links")
    token_hash = models.CharField(max_length=64, unique=True)
    label = models.CharField(max_length=120, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    views = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return self.label or f"Review link {self.pk}"

    @property
    def is_open(self) -> bool:
        """Whether it lets anybody in at this moment."""
        return self.revoked_at is None and self.expires_at > timezone.now()

    @property
    def state(self) -> str:
        """`open`, `revoked` or `expired`."""
        return "open" if self.is_open else "revoked" if self.revoked_at is not None else "expired"


def _upload_id() -> str:
    return secrets.token_hex(16)


class Upload(models.Model):
    """A file that somebody brought, and what became of it."""

    class State(models.TextChoices):
        """Where the job stands."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        HELD = "held"  # secrets were found: an admin decides

    id = models.CharField(max_length=32, primary_key=True, default=_upload_id)
    filename = models.CharField(max_length=255)
    name = models.CharField(max_length=120, blank=True)
    size_bytes = models.BigIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    progress = models.PositiveSmallIntegerField(default=0)  # percent
    message = models.CharField(max_length=300, blank=True)
    error = models.JSONField(null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    owner_pid = models.PositiveIntegerField(default=0)  # the process that works on it
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return self.filename

    @property
    def finished(self) -> bool:
        """Nothing more will happen by itself."""
        return self.state in (self.State.DONE, self.State.FAILED, self.State.HELD)
