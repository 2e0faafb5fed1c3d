"""Everything that can be known about a Cassette without replaying it (spec: cassette-v7 §1 "our rule", §13.4).

One verifier runs the reference's stages `resolve`, `launch` and `tape-load`, with the hardenings H1-H14, in the order
of the spec. The tape is streamed; hashes are computed piece by piece.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from cassettes.artifacts.audit_addresses import check_addresses
from cassettes.artifacts.audit_inventory import check_blobs, check_disk, check_inventory
from cassettes.artifacts.audit_tape import TapeAudit, TapeReport, check_tape_manifest
from cassettes.artifacts.cassette import FILES, CassetteFolder
from cassettes.core import jsontext
from cassettes.core.activity import ActivityEvent, check_playable, check_portable, check_timeline, decode_line
from cassettes.core.checkpoints import TERMINAL_KINDS, CheckpointPlan, check_plan
from cassettes.core.errors import CassetteRejected, Place, RepriseError
from cassettes.core.manifest import STATE_FORMAT, CassetteManifest, check_id, check_name
from cassettes.core.policy import POLICY
from cassettes.core.records import present
from cassettes.core.state import ReplayState, check_artifact_state, check_state, from_wire
from cassettes.core.state_rules import check_portable_document
from cassettes.providers import registry

_MANIFEST = FILES.cassette_manifest.path


@dataclass(slots=True)
class StaticReport:
    """A verified Cassette: its manifest, what was counted, and what is worth saying without being an error."""

    manifest: CassetteManifest
    manifest_sha256: str
    event_count: int = 0
    checkpoint_count: int = 0
    frame_count: int = 0
    connection_count: int = 0
    turn_count: int = 0
    tape_duration_ms: int = 0
    activity_duration_ms: int = 0
    total_bytes: int = 0
    completion_anchored: bool = True
    notes: list[str] = field(default_factory=list)


def verify_static(
    path: Path,
    *,
    expected_id: str = "",
    manifest_sha256: str = "",
    ignored_folders: Collection[str] = (),
) -> StaticReport:
    """Verify the Cassette in the folder `path`. Raises `CassetteRejected` with the first failure.

    `expected_id` is the id it is opened under, `manifest_sha256` the expected hash of its manifest (any letter case).
    `ignored_folders` are top-level folders that are not part of it yet (a candidate's private one).
    """
    try:
        with jsontext.deep_nesting():
            return _Audit(CassetteFolder(path), ignored_folders).run(expected_id, manifest_sha256)
    except RecursionError:
        raise CassetteRejected("A value is nested too deeply.", code="json_too_deep") from None


class _Audit:
    def __init__(self, folder: CassetteFolder, ignored_folders: Collection[str]) -> None:
        self._folder = folder
        self._ignored = ignored_folders

    def run(self, expected_id: str, manifest_sha256: str) -> StaticReport:
        folder = self._folder
        found = folder.manifest_sha256
        if manifest_sha256 and manifest_sha256.strip().lower() != found:
            raise CassetteRejected(
                "The manifest is not the expected one.",
                code="manifest_hash_mismatch",
                place=Place(file=_MANIFEST),
                expected=manifest_sha256,
                found=found,
                hint="The Cassette was renamed or replaced since; read the catalog again.",
            )
        manifest = folder.manifest
        check_manifest(manifest, expected_id)
        report = StaticReport(manifest, found, total_bytes=manifest.total_bytes)
        blobs = folder.blobs()
        check_blobs(blobs)
        check_inventory(manifest, blobs)
        digest = check_disk(folder.path, manifest, blobs, self._ignored)
        try:
            self._parts(report)
        finally:
            if digest is not None:
                digest.check()
        return report

    def _parts(self, report: StaticReport) -> None:
        """What the files say, in the order of the spec."""
        folder, manifest = self._folder, report.manifest
        events = self._activity(report)
        plan = folder.plan()
        tape = self._tape(report)
        check_plan(plan, [one.connection_id for one in tape.manifest.connections], events)
        self._plan_hardening(report, plan)
        initial, expected = self._states(manifest)
        check_addresses(plan, events, tape, initial)
        report.turn_count = sum(len(session.turns) for session in expected.agent.sessions)

    # ------------------------------------------------------------------------------------------ parts
    def _activity(self, report: StaticReport) -> list[ActivityEvent]:
        events: list[ActivityEvent] = []
        for number, line in self._folder.activity_lines():
            events.append(decode_line(line, number))
        check_timeline(events)
        for event in events:
            check_portable(event)
        check_playable(events)
        report.event_count = len(events)
        report.activity_duration_ms = events[-1].occurred_at_unix_ms - events[0].occurred_at_unix_ms
        return events

    def _tape(self, report: StaticReport) -> TapeReport:
        manifest = self._folder.tape_manifest()
        check_tape_manifest(manifest)
        # The bytes on disk have the digest of the inventory, or the audit ends with that.
        on_disk = next(file.sha256.lower() for file in report.manifest.files if file.path == FILES.provider_frames.path)
        tape = TapeAudit(self._folder, manifest).run(frames_sha256=on_disk)
        report.frame_count = tape.frame_count
        report.connection_count = len(manifest.connections)
        report.tape_duration_ms = tape.duration_ms
        report.notes += tape.notes
        return tape

    @staticmethod
    def _plan_hardening(report: StaticReport, plan: CheckpointPlan) -> None:
        for checkpoint in plan.checkpoints[1:]:
            if checkpoint.trigger.source == "bootstrap":
                raise CassetteRejected(
                    "A later checkpoint has the bootstrap trigger.",
                    code="checkpoint_plan_invalid",
                    place=Place(
                        file=FILES.checkpoint_plan.path, path=f"$.checkpoints[{checkpoint.index}].trigger.source"
                    ),
                )
        report.checkpoint_count = len(plan.checkpoints)
        if plan.checkpoints[-1].kind not in TERMINAL_KINDS:
            report.completion_anchored = False
            report.notes.append("the last checkpoint is not terminal: completion is not anchored")

    def _states(self, manifest: CassetteManifest) -> tuple[ReplayState | None, ReplayState]:
        initial = None
        data = self._folder.initial_state_bytes()
        if data is not None:
            initial = self._state(data, FILES.initial_state.path, manifest)
        expected = self._state(self._folder.expected_state_bytes(), FILES.expected_state.path, manifest)
        return initial, expected

    @staticmethod
    def _state(data: bytes, name: str, manifest: CassetteManifest) -> ReplayState:
        document = jsontext.decode_strict(data, file=name)
        state = from_wire(document, file=name)
        check_state(state, file=name)
        check_portable_document(document, file=name, artifact=True)
        check_artifact_state(state, file=name, root_session_id=manifest.root_agent_session_id)
        return state


# ------------------------------------------------------------------------------------------------- manifest
def check_manifest(manifest: CassetteManifest, expected_id: str = "") -> None:
    """The manifest's own members, beside its inventory (§4, H1, H4)."""

    def refuse(code: str, message: str, member: str, expected: object = None, found: object = None) -> CassetteRejected:
        return CassetteRejected(
            message, code=code, place=Place(file=_MANIFEST, path=f"$.{member}"), expected=expected, found=found
        )

    check_id(manifest.id)
    if manifest.schema_version != POLICY.schema_version:
        raise CassetteRejected(
            f"This Cassette has version {manifest.schema_version}; only version {POLICY.schema_version} is supported.",
            code="manifest_schema_version",
            place=Place(file=_MANIFEST, path="$.schemaVersion"),
            expected=POLICY.schema_version,
            found=manifest.schema_version,
            hint="There is no migration; record the scenario again.",
        )
    if expected_id and manifest.id != expected_id:
        raise refuse("manifest_id_mismatch", "The Cassette has another id.", "id", expected_id, manifest.id)
    if manifest.state_format != STATE_FORMAT:
        raise refuse(
            "manifest_state_format", "The state format is unknown.", "stateFormat", STATE_FORMAT, manifest.state_format
        )
    for member, value in (
        ("sourceRecordingId", manifest.source_recording_id),
        ("rootAgentSessionId", manifest.root_agent_session_id),
    ):
        if not present(value):
            raise refuse("manifest_member_blank", f"The manifest has no {member}.", member)
    if manifest.created_at_unix_ms <= 0:
        raise refuse("manifest_member_blank", "The manifest has no time of creation.", "createdAtUnixMs")
    if registry.target_provider(manifest.agent_target_id) is None:
        raise refuse(
            "manifest_target_unregistered",
            "No adapter is registered for the agent target.",
            "agentTargetId",
            found=manifest.agent_target_id,
        )
    defaults = manifest.replay_prerequisites.composer_defaults
    for member, value in (
        ("model", defaults.model),
        ("permissionModeId", defaults.permission_mode_id),
        ("reasoningEffort", defaults.reasoning_effort),
        ("speed", defaults.speed),
    ):
        if not present(value) or value != value.strip():
            raise refuse(
                "manifest_composer_default",
                "A composer default is blank or not trimmed.",
                f"replayPrerequisites.composerDefaults.{member}",
                found=value,
            )
    try:
        check_name(manifest.name)
    except RepriseError as error:
        raise refuse("manifest_name_invalid", error.message, "name") from None
