"""Which images a state refers to (spec: cassette-v7 §6.3)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cassettes.core.blobs import ATTACHMENT, EXTENSIONS, GENERATED, GENERATED_FOLDER, BlobEntry
from cassettes.core.state import HOME_TOKEN, ReplayState

_PREFIX = f"{HOME_TOKEN}/"


@dataclass(frozen=True, slots=True)
class BlobReference:
    """One image of one session: a prompt attachment by its id, or a generated image by its path."""

    kind: str
    agent_session_id: str
    mime_type: str
    attachment_id: str = ""
    relative_path: str = ""

    @classmethod
    def of(cls, entry: BlobEntry) -> BlobReference:
        """The reference that a manifest entry answers."""
        return cls(entry.kind, entry.agent_session_id, entry.mime_type, entry.attachment_id, entry.relative_path)


def blob_references(state: ReplayState) -> list[BlobReference]:
    """Every referenced image in document order, without repetition."""
    found: dict[BlobReference, None] = {}
    for session in state.agent.sessions:
        for message in session.messages:
            for attachment, mime_type in _images(message.payload):
                found[BlobReference(ATTACHMENT, session.id, mime_type, attachment_id=attachment)] = None
            for path, mime_type in _generated(message.payload.get("output")):
                found[BlobReference(GENERATED, session.id, mime_type, relative_path=path)] = None
    return list(found)


def _images(payload: dict[str, Any]) -> Iterator[tuple[str, str]]:
    pending: list[Any] = [payload]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            attachment, mime_type = value.get("attachmentId"), value.get("mimeType")
            is_image = value.get("type") == "image" and isinstance(mime_type, str) and mime_type in EXTENSIONS
            if is_image and isinstance(attachment, str) and attachment.strip():
                yield attachment, str(mime_type)
            pending.extend(reversed(list(value.values())))
        elif isinstance(value, list):
            pending.extend(reversed(value))


def _generated(output: object) -> Iterator[tuple[str, str]]:
    if not isinstance(output, dict):
        return
    mime_type = output.get("imageMimeType")
    if not isinstance(mime_type, str) or mime_type not in EXTENSIONS:
        return
    several = output.get("savedPaths")
    for path in [output.get("savedPath"), *(several if isinstance(several, list) else ())]:
        if isinstance(path, str) and path.startswith(_PREFIX + GENERATED_FOLDER):
            relative = path.removeprefix(_PREFIX)
            if posixpath.splitext(relative)[1] == EXTENSIONS[mime_type]:
                yield relative, mime_type
