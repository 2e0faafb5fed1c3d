"""The catalog: rows that repeat what the artifacts say, and the review links to them.

Everything about a Cassette comes from its artifact alone, so `rebuild` restores every row. Review links are no part of
an artifact: they live in the database only.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from cassettes.artifacts.archives import export_archive
from cassettes.artifacts.cassette import FILES, CassetteFolder
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import Conflict, InputRejected, Place, RepriseError
from cassettes.core.manifest import MAX_NAME, CassetteManifest
from cassettes.core.recording import COMPLETE
from cassettes.models import Cassette, Recording, ReviewLink
from cassettes.playback.index import TapeIndex
from cassettes.viewing import service

SORTS = ("name", "provider", "created_at", "duration_ms", "turns", "tool_calls", "size_bytes")
LINK_TIMES = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_SEARCH_WORDS = 8

Person = User | AnonymousUser


class Unknown(RepriseError):
    """What was asked for is not here (any more)."""

    code = "unknown"


# ------------------------------------------------------------------------------------------------- artifacts
def store() -> ArtifactStore:
    """The artifacts of this installation."""
    return ArtifactStore(home())


def home() -> Path:
    """The folder of the artifacts."""
    return Path(settings.REPRISE_HOME) / "artifacts"


def artifact_path(cassette_id: str) -> Path:
    """Where the artifact of a Cassette lies. `cassette_unknown` when there is none."""
    try:
        return store().folder(cassette_id).path
    except RepriseError:
        raise _unknown(cassette_id) from None


def get(cassette_id: str) -> Cassette:
    """The row of a Cassette. `cassette_unknown` when there is none."""
    row = Cassette.objects.filter(pk=cassette_id).first()
    if row is None:
        raise _unknown(cassette_id)
    return row


def _unknown(cassette_id: str) -> Unknown:
    return Unknown(
        "There is no Cassette with this id.",
        code="cassette_unknown",
        found=cassette_id,
        hint="It may have been deleted; import it again.",
    )


# ------------------------------------------------------------------------------------------------- rows
def add_from_artifact(cassette_id: str) -> Cassette:
    """Make the rows of a published Cassette and of its Recording, or make them again.

    `recording_exists` when the Recording that it names belongs to another Cassette.
    """
    folder = store().folder(cassette_id)
    facts = _facts(folder)
    with transaction.atomic():
        _check_recording(folder.manifest)
        row, _ = Cassette.objects.update_or_create(id=cassette_id, defaults=facts)
        _put_recording(folder.manifest, row)
    return row


def publish_row(cassette_id: str) -> Cassette:
    """The rows of a Cassette that was just published; when they cannot be made, it is discarded again (§13.6)."""
    try:
        return add_from_artifact(cassette_id)
    except Exception:
        store().discard(cassette_id)
        raise


def _check_recording(manifest: CassetteManifest) -> None:
    other = Recording.objects.filter(pk=manifest.source_recording_id[:200]).exclude(cassette_id=manifest.id).first()
    if other is not None and other.cassette_id is not None:
        raise Conflict(
            "The Recording of this Cassette is the source of another one.",
            code="recording_exists",
            place=Place(file=FILES.cassette_manifest.path, path="$.sourceRecordingId"),
            found=manifest.source_recording_id,
            hint="Delete the other Cassette first if this one shall replace it.",
        )


def _put_recording(manifest: CassetteManifest, row: Cassette) -> None:
    """The complete Recording of a Cassette (§13.8)."""
    facts = {
        "name": row.name,
        "cassette": row,
        "agent_target_id": row.agent_target_id,
        "mode": row.mode,
        "root_agent_session_id": manifest.root_agent_session_id[:200],
        "status": COMPLETE,
        "error_code": "",
        "error_message": "",
        "created_at": row.created_at,
        "updated_at": row.created_at,
    }
    recording_id = manifest.source_recording_id[:200]
    Recording.objects.filter(cassette=row).exclude(pk=recording_id).delete()
    Recording.objects.update_or_create(id=recording_id, defaults=facts)


def _facts(folder: CassetteFolder) -> dict[str, object]:
    """What the list shows, read from the artifact."""
    manifest = folder.manifest
    graph = folder.expected_state().agent
    root = graph.root
    plan = folder.plan()
    index = TapeIndex(folder.path / FILES.provider_frames.path, plan, folder.events())
    # The expected state is never written again, unlike the manifest, which a new name replaces.
    added = (folder.path / FILES.expected_state.path).stat().st_mtime
    return {
        "name": manifest.name,
        "session_title": root.title[:400],
        "provider": root.provider[:100],
        "model": (root.model or manifest.replay_prerequisites.composer_defaults.model)[:200],
        "agent_target_id": manifest.agent_target_id[:200],
        "mode": manifest.mode,
        "created_at": datetime.fromtimestamp(manifest.created_at_unix_ms / 1000, UTC),
        "duration_ms": round(index.duration),
        "turns": len(root.turns),
        "tool_calls": sum(1 for session in graph.sessions for message in session.messages if message.call_id),
        "checkpoints": len(plan.checkpoints),
        "size_bytes": manifest.total_bytes + len(folder.manifest_bytes),
        "manifest_sha256": folder.manifest_sha256,
        "redacted_from": (manifest.redaction.of_cassette_id if manifest.redaction is not None else "")[:200],
        "added_at": datetime.fromtimestamp(added, UTC),
    }


@dataclass(slots=True)
class Rebuilt:
    """What `rebuild` found."""

    kept: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    broken: list[dict[str, object]] = field(default_factory=list)


def rebuild() -> Rebuilt:
    """Make every row again from the artifacts, and drop the rows that have none. A broken artifact is reported."""
    return _made_again(list(store().ids()))


def reconcile() -> Rebuilt:
    """Make the rows that are missing or of another manifest, and drop those without an artifact.

    A server does this when it starts: it is what a death between a change on disk and its rows leaves.
    """
    known = dict(Cassette.objects.values_list("pk", "manifest_sha256"))
    artifacts = store()
    return _made_again([one for one in artifacts.ids() if known.get(one) != _manifest_hash(artifacts, one)])


def _manifest_hash(artifacts: ArtifactStore, cassette_id: str) -> str:
    try:
        return artifacts.folder(cassette_id).manifest_sha256
    except RepriseError:
        return ""


def _made_again(cassette_ids: list[str]) -> Rebuilt:
    result = Rebuilt()
    for cassette_id in cassette_ids:
        try:
            add_from_artifact(cassette_id)
            result.kept.append(cassette_id)
        except RepriseError as error:
            result.broken.append({"cassetteId": cassette_id, **error.as_dict()})
    broken = {str(one["cassetteId"]) for one in result.broken}
    gone = Cassette.objects.exclude(pk__in=set(store().ids()) - broken)
    result.removed = sorted(gone.values_list("pk", flat=True))
    gone.delete()
    return result


def search(query: str = "", sort: str = "-created_at") -> QuerySet[Cassette]:
    """The Cassettes whose name, title or id holds every word of `query`. An unknown `sort` means newest first."""
    if sort.removeprefix("-") not in SORTS:
        sort = "-created_at"
    rows = Cassette.objects.order_by(sort, "id")
    for word in query.replace("\0", "").split()[:_SEARCH_WORDS]:
        rows = rows.filter(Q(name__icontains=word) | Q(session_title__icontains=word) | Q(id__icontains=word))
    return rows


def delete(cassette_id: str) -> None:
    """Discard a Cassette with its rows and review links, and close every viewing of it."""
    artifacts = store()
    if not Cassette.objects.filter(pk=cassette_id).exists():
        artifact_path(cassette_id)  # says that it is unknown
    with transaction.atomic():
        Cassette.objects.filter(pk=cassette_id).delete()
        artifacts.discard(cassette_id)  # fails: the rows stay
    service.close_cassette(cassette_id)


def rename(cassette_id: str, name: str) -> Cassette:
    """Change the display name in the artifact and in both rows; when a row cannot be written the old one returns."""
    artifact_path(cassette_id)
    artifacts = store()
    before = artifacts.folder(cassette_id).manifest.name
    artifacts.rename(cassette_id, name)
    try:
        return add_from_artifact(cassette_id)
    except Exception:
        artifacts.rename(cassette_id, before)
        raise


def export(cassette_id: str, archive_format: str, out: BinaryIO) -> None:
    """Write a Cassette as an archive (`.zip`, `.tar`, `.tar.gz`, `.tar.zst`)."""
    artifact_path(cassette_id)
    export_archive(store(), cassette_id, archive_format, out)


# ------------------------------------------------------------------------------------------------- review links
def create_link(
    cassette_id: str, *, expires: str = "7d", label: str = "", by: Person | None = None
) -> tuple[ReviewLink, str]:
    """A new review link and its token, which nobody can read again. `expires` is one of `LINK_TIMES`."""
    if expires not in LINK_TIMES:
        raise InputRejected(
            "A review link lasts one of the offered times.",
            code="link_expiry_invalid",
            expected=", ".join(LINK_TIMES),
            found=expires,
        )
    label = label.strip()
    if len(label) > MAX_NAME:
        raise InputRejected(f"A label has at most {MAX_NAME} characters.", code="link_label_invalid")
    token = secrets.token_urlsafe(32)
    link = ReviewLink.objects.create(
        cassette=get(cassette_id),
        token_hash=_hash(token),
        label=label,
        created_by=by if isinstance(by, User) else None,
        expires_at=timezone.now() + LINK_TIMES[expires],
    )
    return link, token


def revoke_link(link_id: int, cassette_id: str | None = None) -> ReviewLink:
    """Revoke a review link and close its open sockets. `link_unknown` when there is none."""
    rows = ReviewLink.objects.filter(pk=link_id)
    link = (rows if cassette_id is None else rows.filter(cassette_id=cassette_id)).first()
    if link is None:
        raise Unknown("There is no such review link.", code="link_unknown")
    if link.revoked_at is None:
        link.revoked_at = timezone.now()
        link.save(update_fields=["revoked_at"])
    service.close_link(link.pk)
    return link


def open_link(token: str) -> ReviewLink:
    """The open review link with this token. `review_link_closed`, whatever the reason, when there is none."""
    link = None
    if _TOKEN.fullmatch(token):
        link = ReviewLink.objects.select_related("cassette").filter(token_hash=_hash(token)).first()
    if link is None or not link.is_open:
        raise Unknown("This review link does not open anything (any more).", code="review_link_closed")
    return link


def count_view(link: ReviewLink) -> None:
    """Note that a review link was used."""
    ReviewLink.objects.filter(pk=link.pk).update(views=F("views") + 1, last_used_at=timezone.now())


def link_is_open(link_id: int) -> bool:
    """Whether a review link still lets people watch."""
    link = ReviewLink.objects.filter(pk=link_id).first()
    return link is not None and link.is_open


def links(cassette_id: str) -> Iterator[ReviewLink]:
    """The review links of a Cassette, newest first."""
    yield from ReviewLink.objects.filter(cassette_id=cassette_id).select_related("created_by")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
