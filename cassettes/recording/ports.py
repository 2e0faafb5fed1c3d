"""The ports of the recording workflow on real parts: store, host, transport; rows kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cassettes.artifacts.candidate import BlobSource, Candidate, no_blobs
from cassettes.artifacts.publish import PublishRequest
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.activity import ActivityEvent
from cassettes.core.checkpoints import CheckpointPlan
from cassettes.core.errors import RecordingError
from cassettes.core.observation import JournalEntry
from cassettes.core.ports import PublishedCassette, StateRole
from cassettes.core.recording import COMPLETE, CassetteRow, Recording
from cassettes.core.state import encode_state
from cassettes.host.host import Host
from cassettes.recording.transport import RecordingTransport


class MemoryMetadata:
    """Rows of Recordings that live as long as the process: an import keeps none."""

    def __init__(self) -> None:
        self.cassettes: dict[str, CassetteRow] = {}
        self._recordings: dict[str, Recording] = {}

    def put(self, recording: Recording) -> None:
        self._recordings[recording.id] = recording

    def get(self, recording_id: str) -> Recording | None:
        return self._recordings.get(recording_id)

    def all(self) -> Sequence[Recording]:
        return list(self._recordings.values())

    def delete(self, recording_id: str) -> None:
        gone = self._recordings.pop(recording_id, None)
        if gone is not None:
            self.cassettes.pop(gone.cassette_id, None)

    def publish(self, recording: Recording, cassette: CassetteRow) -> None:
        self._recordings[recording.id] = recording
        self.cassettes[cassette.id] = cassette


class StoreArtifacts:
    """Candidates and Cassettes of an artifact store."""

    def __init__(self, store: ArtifactStore, blobs: BlobSource = no_blobs) -> None:
        self._store = store
        self._blobs = blobs
        self._candidates: dict[str, Candidate] = {}

    def prepare(self, recording: Recording) -> None:
        self._candidates[recording.id] = self._store.prepare(recording.id)

    def locate(self, recording: Recording) -> Path:
        if recording.cassette_id:
            return self._store.folder(recording.cassette_id).path
        return self._candidate(recording).path

    def append_event(self, recording: Recording, event: ActivityEvent) -> None:
        self._candidate(recording).append_event(event)

    def append_journal(self, recording: Recording, entry: JournalEntry) -> None:
        self._candidate(recording).append_journal(entry)

    def write_plan(self, recording: Recording, plan: CheckpointPlan) -> None:
        self._candidate(recording).write_plan(plan)

    def write_state(self, recording: Recording, role: StateRole, data: bytes) -> None:
        candidate = self._candidate(recording)
        if role == "initial":
            candidate.write_initial_state(data, self._blobs)
        else:
            candidate.write_expected_state(data, self._blobs)

    def publish(
        self, recording: Recording, cassette_id: str, accepted_events: int, created_at_unix_ms: int
    ) -> PublishedCassette:
        request = PublishRequest(
            cassette_id=cassette_id,
            name=recording.name,
            source_recording_id=recording.id,
            agent_target_id=recording.agent_target_id,
            composer_defaults=recording.replay_prerequisites.composer_defaults,
            root_agent_session_id=recording.root_agent_session_id,
            mode=recording.mode,
            created_at_unix_ms=created_at_unix_ms,
            accepted_events=accepted_events,
        )
        published = self._store.publish(self._candidate(recording), request)
        del self._candidates[recording.id]
        return PublishedCassette(published.manifest, published.manifest_sha256)

    def rollback(self, recording: Recording, cassette_id: str) -> None:
        self._store.rollback(cassette_id, recording.id)

    def rename(self, cassette_id: str, name: str) -> PublishedCassette:
        published = self._store.rename(cassette_id, name)
        return PublishedCassette(published.manifest, published.manifest_sha256)

    def discard(self, recording: Recording) -> None:
        candidate = self._candidates.pop(recording.id, None)
        if candidate is not None:
            candidate.release()
        if recording.status == COMPLETE:
            self._store.discard(recording.cassette_id)
        else:
            self._store.discard_candidate(recording.id)

    def _candidate(self, recording: Recording) -> Candidate:
        candidate = self._candidates.get(recording.id)
        if candidate is None:
            raise RecordingError("The candidate of this Recording is not open here.", code="artifact_locate_failed")
        return candidate


class HostState:
    """The canonical state of a host. `settle` lets time pass until nothing runs, where somebody can."""

    def __init__(self, host: Host, settle: Callable[[], None] = lambda: None) -> None:
        self._host = host
        self._settle = settle

    def resolve_root(self, agent_session_id: str) -> str:
        row = self._host.session(agent_session_id)
        return row.root_id if row is not None else ""

    def capture(self, root_agent_session_id: str) -> bytes:
        return encode_state(self._host.capture(root_agent_session_id))

    def wait_settled(self, root_agent_session_id: str, timeout_ms: int) -> bool:
        self._settle()
        return self._host.is_settled(root_agent_session_id)


class TransportRecorder:
    """Arms the recording transport. The tape lies in the candidate's provider folder."""

    def __init__(self, transport: RecordingTransport) -> None:
        self._transport = transport

    def arm(self, root_agent_session_id: str, generation: str, tape_folder: Path) -> None:
        self._transport.arm(root_agent_session_id, generation, tape_folder / "provider")

    def complete(self, root_agent_session_id: str) -> None:
        self._transport.complete(root_agent_session_id)

    def cancel(self, root_agent_session_id: str) -> None:
        self._transport.cancel(root_agent_session_id)
