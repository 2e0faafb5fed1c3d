"""Sealing a candidate: counts, plan, journal anchors, inventory, manifest (spec: cassette-v7 §13.3, steps 1-8)."""

from __future__ import annotations

from dataclasses import dataclass

from cassettes.artifacts.candidate import PRIVATE_FOLDER, Candidate
from cassettes.artifacts.cassette import FILES
from cassettes.artifacts.files import sha256_of, walk_files, write_whole
from cassettes.core.activity import check_portable, check_timeline
from cassettes.core.checkpoints import TERMINAL_KINDS
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.manifest import (
    STATE_FORMAT,
    CassetteManifest,
    ComposerDefaults,
    InventoryFile,
    ReplayPrerequisites,
    check_name,
    encode_manifest,
    manifest_hash,
)
from cassettes.core.observation import check_anchors
from cassettes.core.policy import BLOB_FOLDER, BLOB_ROLE, POLICY


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """What a Recording knows about its Cassette. `accepted_events` is the sequence the workflow accepted."""

    cassette_id: str
    name: str
    source_recording_id: str
    agent_target_id: str
    composer_defaults: ComposerDefaults
    root_agent_session_id: str
    mode: str
    created_at_unix_ms: int
    accepted_events: int


def prepare_publication(candidate: Candidate, request: PublishRequest) -> tuple[CassetteManifest, str]:
    """Check what only a publication checks, then write `cassette.json`; gives the manifest and its hash."""
    folder = candidate.folder
    events = folder.events()
    if len(events) != request.accepted_events:
        raise CassetteRejected(
            "The timeline on disk has another number of events than were accepted.",
            code="activity_count_mismatch",
            place=Place(file=FILES.activity_events.path),
            expected=request.accepted_events,
            found=len(events),
        )
    check_timeline(events)
    for event in events:
        check_portable(event)
    plan = folder.plan()
    if not plan.checkpoints or plan.checkpoints[-1].kind not in TERMINAL_KINDS:
        raise CassetteRejected(
            "The last checkpoint of a published plan must be terminal.",
            code="checkpoint_plan_invalid",
            place=Place(file=FILES.checkpoint_plan.path, path="$.checkpoints"),
            hint="Complete the recording after a Turn, goal, child or compaction has ended.",
        )
    check_anchors(plan, candidate.journal)
    manifest = _manifest(candidate, request)
    data = encode_manifest(manifest)
    write_whole(candidate.path / FILES.cassette_manifest.path, data)
    return manifest, manifest_hash(data)


def _manifest(candidate: Candidate, request: PublishRequest) -> CassetteManifest:
    roles = {path: file.role for path, file in POLICY.inventoried().items()}
    files = [
        InventoryFile(
            path=name,
            role=roles.get(name, BLOB_ROLE if name.startswith(BLOB_FOLDER) else ""),
            size_bytes=size,
            sha256=sha256_of(path),
        )
        for name, path, size in walk_files(candidate.path, (PRIVATE_FOLDER,))
        if name != FILES.cassette_manifest.path
    ]
    return CassetteManifest(
        schema_version=POLICY.schema_version,
        state_format=STATE_FORMAT,
        id=request.cassette_id,
        name=check_name(request.name),
        source_recording_id=request.source_recording_id,
        agent_target_id=request.agent_target_id,
        replay_prerequisites=ReplayPrerequisites(composer_defaults=request.composer_defaults),
        root_agent_session_id=request.root_agent_session_id,
        mode=request.mode,
        total_bytes=sum(file.size_bytes for file in files),
        max_total_bytes=POLICY.limits.max_cassette_bytes,
        files=files,
        created_at_unix_ms=request.created_at_unix_ms,
    )
