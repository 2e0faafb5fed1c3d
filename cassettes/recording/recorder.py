"""Records one session: the workflow, and the observers that feed it (spec: recording.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cassettes.artifacts.candidate import BlobSource, no_blobs
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.activity import ActivityEvent
from cassettes.core.errors import RecordingError
from cassettes.core.portable_activity import portable_event
from cassettes.core.recording import CassetteRow, Recording
from cassettes.core.workflow import RecordingWorkflow, StartRequest
from cassettes.engine.engine import Command, CommandResult
from cassettes.host.host import Host
from cassettes.host.model import Commit
from cassettes.providers.ports import IdSource
from cassettes.recording.activity import ActivityRecorder
from cassettes.recording.checkpoints import CheckpointRecorder
from cassettes.recording.ports import HostState, MemoryMetadata, StoreArtifacts, TransportRecorder
from cassettes.recording.transport import RecordingTransport
from cassettes.session.ports import Unit, UnitEvent
from cassettes.session.session import AgentSession

JsonObject = dict[str, Any]
SCOPE = "local"


class SessionRecorder:
    """One Recording of one session. Also the session observer that feeds it.

    `new_id` gives the ids of Recording and Cassette, in this order. `settle` lets time pass until nothing runs.
    """

    def __init__(
        self,
        *,
        session: AgentSession,
        host: Host,
        transport: RecordingTransport,
        store: ArtifactStore,
        ids: IdSource,
        now: Callable[[], int],
        new_id: Callable[[], str],
        settle: Callable[[], None] = lambda: None,
        blobs: BlobSource = no_blobs,
        prompt_assets: Path | None = None,
    ) -> None:
        self._host = host
        self._metadata = MemoryMetadata()
        self._activity = ActivityRecorder(now, ids, self._accept)
        self._checkpoints: CheckpointRecorder | None = None
        self._recording: Recording | None = None
        self._sequence = 0
        self.workflow = RecordingWorkflow(
            metadata=self._metadata,
            replay_state=HostState(host, settle),
            artifacts=StoreArtifacts(store, blobs),
            process=TransportRecorder(transport),
            now=now,
            new_id=new_id,
            project=lambda recording, event: portable_event(event, prompt_assets),
            seal=self._seal,
        )
        session.observe(self)

    def begin(self, request: StartRequest, root_session_id: str) -> Recording:
        """Start a Recording of a session that is about to be created, and bind it."""
        started = self.workflow.start(request)
        self._checkpoints = CheckpointRecorder(
            self._host,
            root_session_id,
            accepted=lambda: self._sequence,
            write_entry=lambda entry: self.workflow.append_journal(started.id, entry),
        )
        self._recording = self.workflow.bind(
            started.id,
            scope_id=request.scope_id,
            agent_target_id=request.agent_target_id,
            root_agent_session_id=root_session_id,
        )
        return self._recording

    def complete(self) -> CassetteRow:
        """Settle, finish, audit and publish. `RecordingError` with the code of the step that failed."""
        assert self._recording is not None and self._checkpoints is not None
        self.workflow.write_plan(self._recording.id, self._checkpoints.finished_plan())
        done = self.workflow.complete(self._recording.id)
        return self._metadata.cassettes[done.cassette_id]

    def cancel(self) -> None:
        """Give up: nothing is left."""
        if self._recording is None:
            return
        known = self._metadata.get(self._recording.id)
        if known is not None and known.active:
            self.workflow.cancel(known.id)
        elif known is not None and not known.cassette_id:
            self.workflow.delete(known.id)

    # ------------------------------------------------------------------ as an observer

    def on_intent(self, intent: JsonObject) -> None:
        self._activity.on_intent(intent)

    def on_command(self, command: Command) -> None:
        self._activity.on_command(command)

    def on_command_result(self, command: Command, result: CommandResult) -> None:
        self._activity.on_command_result(command, result)

    def on_commit(self, commit: Commit) -> None:
        """Commits are seen with their units."""

    def on_unit(self, unit: Unit, events: Sequence[UnitEvent], commit: Commit) -> None:
        if self._checkpoints is not None:
            self._checkpoints.on_unit(unit, events, commit)

    def _accept(self, event: ActivityEvent) -> None:
        sequence = self.workflow.accept_event(SCOPE, event)
        if sequence > self._sequence and self._checkpoints is not None:
            self._sequence = sequence
            self._checkpoints.on_event(event, sequence)

    def _seal(self, recording: Recording) -> Sequence[str]:
        try:
            self._activity.seal()
        except RecordingError as error:
            return [error.message]
        return []
