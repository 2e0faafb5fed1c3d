"""`blobs/manifest.json`: images that a Cassette carries (cassette-v7 §6)."""

from __future__ import annotations

import posixpath
from typing import ClassVar

import msgspec

from cassettes.core import jsontext
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.policy import POLICY
from cassettes.core.records import Record, indented_bytes, present, read_record

BLOB_MANIFEST_FILE = POLICY.files.blob_manifest.path
ATTACHMENT = "agent-prompt-attachment"
GENERATED = "agent-generated-image"
EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}
GENERATED_FOLDER = "generated_images/"


class BlobEntry(Record):
    """One referenced blob."""

    omit_empty: ClassVar[frozenset[str]] = frozenset({"attachmentId", "relativePath"})
    kind: str = ""
    sha256: str = ""
    size_bytes: int = 0
    agent_session_id: str = ""
    attachment_id: str = ""
    relative_path: str = ""
    mime_type: str = ""

    @property
    def digest(self) -> str:
        """The digest as it names the file: trimmed and lower case."""
        return self.sha256.strip().lower()

    @property
    def target(self) -> str:
        """Where the blob goes at launch, relative to the state folder; `<home>` stands for the provider's folder."""
        if self.kind == ATTACHMENT:
            return f"agent/attachments/{self.agent_session_id}/{self.attachment_id}{EXTENSIONS[self.mime_type]}"
        return f"agent/runs/{self.agent_session_id}/<home>/{self.relative_path}"


class BlobManifest(Record):
    """The list of blobs."""

    schema_version: int = 0
    blobs: list[BlobEntry] = msgspec.field(default_factory=list)


def empty_manifest() -> BlobManifest:
    """A manifest without blobs."""
    return BlobManifest(schema_version=POLICY.blob_manifest_schema_version)


def decode_blob_manifest(data: bytes) -> BlobManifest:
    """The bytes of the blob manifest as a record."""
    return read_record(BlobManifest, jsontext.decode_strict(data, file=BLOB_MANIFEST_FILE), file=BLOB_MANIFEST_FILE)


def encode_blob_manifest(manifest: BlobManifest) -> bytes:
    """The exact bytes of the blob manifest."""
    return indented_bytes(manifest)


def check_entry(entry: BlobEntry, index: int) -> None:
    """The rules of §6.2, in order."""

    def reject(member: str, detail: str) -> CassetteRejected:
        place = Place(BLOB_MANIFEST_FILE, 0, f"$.blobs[{index}].{member}")
        return CassetteRejected(f"blob {index}: {detail}", code="blob_entry_invalid", place=place)

    if not is_digest(entry.digest):
        raise reject("sha256", "the digest is not 64 hex digits")
    if entry.size_bytes > POLICY.limits.max_portable_blob_bytes:
        raise reject("sizeBytes", f"larger than {POLICY.limits.max_portable_blob_bytes} bytes")
    if not is_safe_segment(entry.agent_session_id):
        raise reject("agentSessionId", "the session id is not a safe path segment")
    if entry.mime_type not in EXTENSIONS:
        raise reject("mimeType", f"{entry.mime_type!r} is not supported")
    if entry.kind == ATTACHMENT:
        if present(entry.relative_path):
            raise reject("relativePath", "a prompt attachment has no path")
        if not is_safe_segment(entry.attachment_id):
            raise reject("attachmentId", "the attachment id is not a safe path segment")
    elif entry.kind == GENERATED:
        if present(entry.attachment_id):
            raise reject("attachmentId", "a generated image has no attachment id")
        if not is_generated_path(entry.relative_path, entry.mime_type):
            raise reject("relativePath", "the path is not a safe path of a generated image")
    else:
        raise reject("kind", f"kind {entry.kind!r} is unknown")


def is_digest(text: str) -> bool:
    """64 lower-case hex digits."""
    return len(text) == 64 and all(mark in "0123456789abcdef" for mark in text)


def is_safe_segment(text: str) -> bool:
    """Present, not `.` or `..`, no slash of either kind."""
    return present(text) and text not in {".", ".."} and not any(mark in text for mark in "/\\\0")


def is_generated_path(path: str, mime_type: str) -> bool:
    """Below `generated_images/`, normalised, with exactly the extension of the media type."""
    if not path.startswith(GENERATED_FOLDER) or "\\" in path or "\0" in path or path != posixpath.normpath(path):
        return False
    return posixpath.splitext(path)[1] == EXTENSIONS.get(mime_type)
