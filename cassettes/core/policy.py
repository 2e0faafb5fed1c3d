"""Limits and inventory of a Cassette, from the one policy file that every language reads (cassette-v7 §5)."""

from __future__ import annotations

from importlib import resources

import msgspec


class PolicyFile(msgspec.Struct, frozen=True):
    """One file that a Cassette may hold."""

    path: str
    role: str
    required: bool
    inventory: bool = True


class PolicyFiles(msgspec.Struct, frozen=True, rename="camel"):
    """The files by name."""

    activity_events: PolicyFile
    checkpoint_plan: PolicyFile
    initial_state: PolicyFile
    provider_manifest: PolicyFile
    provider_frames: PolicyFile
    expected_state: PolicyFile
    blob_manifest: PolicyFile
    cassette_manifest: PolicyFile


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """Sizes in bytes."""

    max_provider_payload_bytes: int
    max_provider_tape_bytes: int
    max_cassette_bytes: int
    max_portable_blob_bytes: int


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """The whole policy."""

    schema_version: int
    blob_manifest_schema_version: int
    limits: Limits
    files: PolicyFiles

    def inventoried(self) -> dict[str, PolicyFile]:
        """Path → file of every file that the inventory may list, blobs aside."""
        files = [getattr(self.files, name) for name in PolicyFiles.__struct_fields__]
        return {one.path: one for one in files if one.inventory}


POLICY = msgspec.json.decode(resources.files(__package__).joinpath("cassette-policy.json").read_bytes(), type=Policy)
BLOB_FOLDER = "blobs/sha256/"
BLOB_ROLE = "referenced-blob"
MAX_FRAME_LINE_BYTES = 16_777_215
MAX_LINE_BYTES = POLICY.limits.max_cassette_bytes - 1
