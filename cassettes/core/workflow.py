"""The steps of a Recording from its start to a published Cassette (spec: recording.md, cassette-v7 §7.4, §14).

Everything that comes from a capture carries the Recording id as its generation. What carries another one is ignored:
a late callback of an old Recording never writes into a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from cassettes.core import recording as status
from cassettes.core.activity import ActivityEvent, Timeline
from cassettes.core.checkpoints import CheckpointPlan
from cassettes.core.errors import RecordingError
from cassettes.core.manifest import SCHEMA_VERSION, ReplayPrerequisites, check_name
from cassettes.core.observation import JournalEntry
from cassettes.core.ports import ArtifactPort, MetadataPort, ProcessRecorderPort, PublishedCassette, ReplayStatePort
from cassettes.core.recording import CassetteRow, Recording, default_name, moved

SETTLE_TIMEOUT_MS = 120_000
_PREFIX = "agent_session_recording_"


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to record. `agent_session_id` names the session to continue; a new session is bound later."""

    scope_id: str
    agent_target_id: str
    mode: str
    replay_prerequisites: ReplayPrerequisites = msgspec.field(default_factory=ReplayPrerequisites)
    agent_session_id: str = ""
    name: str = ""  # blank: the creation time


class _Capture:
    """What was accepted for the Recording that is being written."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.timeline = Timeline()
        self.sent: dict[str, ActivityEvent] = {}  # accepted events as they were sent, by event id
        self.armed = False
        self.tape_open = False


class RecordingWorkflow:
    """Runs Recordings: at most one active in a scope. Every failure is a `RecordingError` with the code of its step.

    `new_id` gives fresh ids, `now` Unix milliseconds. `project` makes an event portable (§7.5). `seal` closes the
    activity recorder of a Recording and names what it could not account for.
    """

    def __init__(
        self,
        *,
        metadata: MetadataPort,
        replay_state: ReplayStatePort,
        artifacts: ArtifactPort,
        process: ProcessRecorderPort,
        now: Callable[[], int],
        new_id: Callable[[], str],
        project: Callable[[Recording, ActivityEvent], ActivityEvent],
        seal: Callable[[Recording], Sequence[str]] = lambda recording: (),
    ) -> None:
        self._metadata = metadata
        self._state = replay_state
        self._artifacts = artifacts
        self._process = process
        self._now = now
        self._new_id = new_id
        self._project = project
        self._seal = seal
        self._captures: dict[str, _Capture] = {}

    # ------------------------------------------------------------------------------------------ start and bind
    def start(self, request: StartRequest) -> Recording:
        """Begin a Recording: `ready` for a new session, `recording` for a continued one."""
        scope, target = request.scope_id.strip(), request.agent_target_id.strip()
        wanted_session = request.mode == status.CREATE_SESSION or request.agent_session_id.strip()
        if request.mode not in (status.CREATE_SESSION, status.CONTINUE_SESSION) or not (scope and target):
            raise RecordingError("A Recording needs a mode, a scope and a target.", code="malformed_request")
        if not wanted_session:
            raise RecordingError("The session to continue is not named.", code="malformed_request")
        if any(one.active and one.scope_id == scope for one in self._metadata.all()):
            raise RecordingError("Another Recording is running.", code=_PREFIX + "busy", hint="Finish or cancel it.")
        created = self._now()
        recording = Recording(
            id=self._new_id(),
            name=check_name(request.name) if request.name.strip() else default_name(created),
            scope_id=scope,
            agent_target_id=target,
            mode=request.mode,
            replay_prerequisites=request.replay_prerequisites,
            created_at_unix_ms=created,
            updated_at_unix_ms=created,
        )
        capture = _Capture(recording)
        with self._step(capture, "artifact_prepare_failed"):
            self._artifacts.prepare(recording)
        with self._step(capture, "metadata_write_failed"):
            self._metadata.put(recording)
        self._captures[recording.id] = capture
        if request.mode == status.CREATE_SESSION:
            self._move(capture, status.READY)
            return capture.recording
        with self._step(capture, "session_graph_resolve_failed"):
            root = _given(self._state.resolve_root(request.agent_session_id.strip()), "root session")
        with self._step(capture, "initial_state_capture_failed"):
            self._artifacts.write_state(capture.recording, "initial", self._state.capture(root))
        return self._arm(capture, root)

    def bind(self, recording_id: str, *, scope_id: str, agent_target_id: str, root_agent_session_id: str) -> Recording:
        """Tie a `ready` Recording to the session that was just created. A refusal leaves it `ready`."""
        recording = self.get(recording_id)
        root = root_agent_session_id.strip()
        fits = (recording.scope_id, recording.agent_target_id) == (scope_id.strip(), agent_target_id.strip())
        capture = self._captures.get(recording.id)
        if recording.status != status.READY or not fits or not root or capture is None:
            raise RecordingError(
                "This session cannot be recorded by this Recording.",
                code=_PREFIX + "not_ready",
                expected=f"{status.READY} {recording.scope_id} {recording.agent_target_id}",
                found=f"{recording.status} {scope_id} {agent_target_id}",
            )
        return self._arm(capture, root)

    def _arm(self, capture: _Capture, root: str) -> Recording:
        with self._step(capture, "artifact_locate_failed"):
            folder = self._artifacts.locate(capture.recording)
        # From here to `recording` exactly this generation is admitted: arming may call back at once.
        capture.recording = msgspec.structs.replace(capture.recording, root_agent_session_id=root)
        capture.armed = capture.tape_open = True
        with self._step(capture, "transport_arm_failed"):
            self._process.arm(root, capture.recording.id, folder)
        if capture.recording.active:  # a callback may have failed the Recording
            self._move(capture, status.RECORDING)
        return capture.recording

    # ------------------------------------------------------------------------------------------ what a capture sends
    def admits(self, generation: str) -> bool:
        """May something of this generation be written now?"""
        capture = self._captures.get(generation)
        return capture is not None and capture.armed

    def accept_event(self, scope_id: str, event: ActivityEvent) -> int:
        """Accept one event of a scope (§7.4); gives the last accepted sequence, 0 when the event is not for us."""
        capture = next((one for one in self._captures.values() if self._listens(one, scope_id.strip())), None)
        if capture is None:
            return 0
        root = capture.recording.root_agent_session_id
        session = event.agent_session_id.strip()
        if session != root and (not session or self._state.resolve_root(session) != root):
            return 0
        sent = _trimmed(event)
        known = capture.sent.get(sent.event_id)
        if known is not None:
            return self._repeated(capture, known, sent)
        accepted = msgspec.structs.replace(
            sent,
            schema_version=SCHEMA_VERSION,
            sequence=capture.timeline.sequence + 1,
            occurred_at_unix_ms=sent.occurred_at_unix_ms or self._now(),
        )
        capture.timeline.accept(accepted)  # a refused event leaves the timeline as it was: its sequence is free again
        with self._step(capture, "activity_event_write_failed"):
            self._artifacts.append_event(capture.recording, self._project(capture.recording, accepted))
        capture.sent[sent.event_id] = accepted
        return capture.timeline.sequence

    def accept_events(self, scope_id: str, events: Sequence[ActivityEvent]) -> int:
        """Accept a batch in order; the highest accepted sequence also when one of them is refused."""
        highest = 0
        for event in events:
            try:
                highest = max(highest, self.accept_event(scope_id, event))
            except Exception as error:
                error.add_note(f"accepted up to sequence {highest}")
                raise
        return highest

    def append_journal(self, generation: str, entry: JournalEntry) -> bool:
        """Write a journal entry; False when the generation is another one."""
        return self._write(
            generation, "observation_journal_write_failed", lambda one: self._artifacts.append_journal(one, entry)
        )

    def write_plan(self, generation: str, plan: CheckpointPlan) -> bool:
        """Write the checkpoint plan; False when the generation is another one."""
        return self._write(
            generation, "checkpoint_plan_write_failed", lambda one: self._artifacts.write_plan(one, plan)
        )

    def _write(self, generation: str, code: str, write: Callable[[Recording], None]) -> bool:
        if not self.admits(generation):
            return False
        capture = self._captures[generation]
        with self._step(capture, code):
            write(capture.recording)
        return True

    def _listens(self, capture: _Capture, scope: str) -> bool:
        recording = capture.recording
        return capture.armed and recording.scope_id == scope and recording.status != status.FINALIZING

    def _repeated(self, capture: _Capture, known: ActivityEvent, sent: ActivityEvent) -> int:
        same = msgspec.structs.replace(
            sent,
            schema_version=known.schema_version,
            sequence=known.sequence,
            occurred_at_unix_ms=sent.occurred_at_unix_ms or known.occurred_at_unix_ms,
        )
        if same != known:
            raise RecordingError(
                "An event id was used again with other content.",
                code="activity_event_repeated",
                expected=known.type,
                found=sent.type,
            )
        return capture.timeline.sequence

    # ------------------------------------------------------------------------------------------ completion
    def complete(self, recording_id: str) -> Recording:
        """Finish, audit and publish. A complete Recording is returned again."""
        recording = self.get(recording_id)
        if recording.status == status.COMPLETE:
            return recording
        capture = self._captures.get(recording.id)
        if recording.status != status.RECORDING or capture is None:
            raise RecordingError("Only a running Recording can be completed.", code=_PREFIX + "not_ready")
        root = capture.recording.root_agent_session_id
        capture.recording = moved(capture.recording, status.FINALIZING, self._now())
        with self._step(capture, "activity_timeline_incomplete"):
            defects = list(self._seal(capture.recording))
            if defects:
                raise RecordingError("Something recorded has no end or no cause: " + "; ".join(defects))
            capture.timeline.require_complete()
        with self._step(capture, "metadata_write_failed"):
            self._metadata.put(capture.recording)
        with self._step(capture, "session_graph_settle_failed"):
            if not self._state.wait_settled(root, SETTLE_TIMEOUT_MS):
                raise RecordingError("The session is still working.", hint="Wait for the Turn to end.")
        with self._step(capture, "transport_finalize_failed"):
            self._process.complete(root)
        capture.tape_open = False
        with self._step(capture, "expected_state_export_failed"):
            self._artifacts.write_state(capture.recording, "expected", self._state.capture(root))
        return self._publish(capture)

    def _publish(self, capture: _Capture) -> Recording:
        with self._step(capture, "cassette_identity_failed"):
            cassette_id = _given(self._new_id(), "Cassette id")
        accepted = capture.timeline.sequence
        with self._step(capture, "cassette_publish_failed"):
            published = self._artifacts.publish(capture.recording, cassette_id, accepted, self._now())
        capture.armed = False
        done = moved(capture.recording, status.COMPLETE, self._now(), cassette_id=cassette_id)
        with self._step(capture, "metadata_write_failed", undo=lambda: self._undo(capture, cassette_id)):
            self._metadata.publish(done, _row(published))
        self._captures.pop(done.id, None)
        return done

    def _undo(self, capture: _Capture, cassette_id: str) -> None:
        self._artifacts.rollback(capture.recording, cassette_id)

    # ------------------------------------------------------------------------------------------ ends and names
    def cancel(self, recording_id: str) -> None:
        """Give an active Recording up: capture cancelled, candidate discarded, row deleted."""
        recording = self.get(recording_id)
        if not recording.active:
            raise RecordingError("This Recording is not running.", code=_PREFIX + "not_ready")
        capture = self._captures.pop(recording.id, None)
        try:
            if capture is not None:
                self._stop(capture)
            self._artifacts.discard(recording)
            self._metadata.delete(recording.id)
        except Exception as error:
            raise RecordingError("The Recording could not be cancelled.", code=_PREFIX + "cancel_failed") from error

    def delete(self, recording_id: str) -> None:
        """Delete an inactive Recording with its candidate or Cassette."""
        recording = self.get(recording_id)
        if recording.active:
            raise RecordingError("A running Recording cannot be deleted.", code=_PREFIX + "active", hint="Cancel it.")
        try:
            self._artifacts.discard(recording)
            self._metadata.delete(recording.id)
        except Exception as error:
            raise RecordingError("The Recording could not be deleted.", code=_PREFIX + "delete_failed") from error

    def rename(self, recording_id: str, name: str) -> Recording:
        """Rename a complete Recording and its Cassette; if the rows cannot be written the old name comes back."""
        recording = self.get(recording_id)
        if recording.status != status.COMPLETE or not recording.cassette_id:
            raise RecordingError("Only a complete Recording has a name to change.", code=_PREFIX + "not_ready")
        name = check_name(name)
        try:
            published = self._artifacts.rename(recording.cassette_id, name)
            renamed = msgspec.structs.replace(recording, name=name, updated_at_unix_ms=self._now())
            try:
                self._metadata.publish(renamed, _row(published))
            except Exception:
                self._artifacts.rename(recording.cassette_id, recording.name)
                raise
        except Exception as error:
            raise RecordingError("The Recording could not be renamed.", code=_PREFIX + "rename_failed") from error
        return renamed

    def recover(self) -> list[Recording]:
        """At start-up: what was active when the process died becomes `incomplete`; its candidate is discarded."""
        recovered = []
        for recording in self._metadata.all():
            if recording.active and recording.id not in self._captures:
                reason = "The process that recorded ended."
                ended = moved(
                    recording, status.INCOMPLETE, self._now(), error_code="daemon_restarted", error_message=reason
                )
                self._artifacts.discard(recording)
                self._metadata.put(ended)
                recovered.append(ended)
        return recovered

    def get(self, recording_id: str) -> Recording:
        """The Recording; raises `agent_session_recording_not_found`."""
        capture = self._captures.get(recording_id.strip())
        recording = capture.recording if capture is not None else self._metadata.get(recording_id.strip())
        if recording is None:
            raise RecordingError("There is no Recording with this id.", code=_PREFIX + "not_found")
        return recording

    # ------------------------------------------------------------------------------------------ failure
    def _move(self, capture: _Capture, target: str) -> None:
        with self._step(capture, "recording_transition_failed"):
            following = moved(capture.recording, target, self._now())
            self._metadata.put(following)
            capture.recording = following

    @contextmanager
    def _step(self, capture: _Capture, code: str, undo: Callable[[], None] | None = None) -> Iterator[None]:
        """A step whose failure stops the capture and leaves the Recording `failed` with `code`."""
        try:
            yield
        except Exception as error:
            problems = [str(error) or type(error).__name__]
            for stop in (undo, lambda: self._stop(capture)):
                try:
                    if stop is not None:
                        stop()
                except Exception as second:
                    problems.append(str(second) or type(second).__name__)
            failed = moved(capture.recording, status.FAILED, self._now(), error_code=code, error_message=problems[0])
            capture.recording = failed
            self._captures.pop(failed.id, None)
            try:
                self._metadata.put(failed)
            except Exception as second:
                problems.append(str(second) or type(second).__name__)
            hint = getattr(error, "hint", "")
            raise RecordingError(
                "; ".join(problems), code=code, place=getattr(error, "place", None), hint=hint
            ) from error

    def _stop(self, capture: _Capture) -> None:
        """Withdraw the admission and cancel the capture of the processes."""
        was_open, capture.armed, capture.tape_open = capture.tape_open, False, False
        if was_open:
            self._process.cancel(capture.recording.root_agent_session_id)


def _given(value: str, name: str) -> str:
    if not value.strip():
        raise RecordingError(f"There is no {name}.")
    return value.strip()


def _trimmed(event: ActivityEvent) -> ActivityEvent:
    """The event with trimmed type and ids and its own copy of the payload."""
    names = ("type", "event_id", "correlation_id", "caused_by_event_id", "agent_session_id")
    payload = None if event.payload is None else msgspec.json.decode(msgspec.json.encode(event.payload))
    return msgspec.structs.replace(event, payload=payload, **{name: getattr(event, name).strip() for name in names})


def _row(published: PublishedCassette) -> CassetteRow:
    manifest = published.manifest
    return CassetteRow(
        id=manifest.id,
        name=manifest.name,
        source_recording_id=manifest.source_recording_id,
        agent_target_id=manifest.agent_target_id,
        root_agent_session_id=manifest.root_agent_session_id,
        mode=manifest.mode,
        total_bytes=manifest.total_bytes,
        manifest_sha256=published.manifest_sha256,
        created_at_unix_ms=manifest.created_at_unix_ms,
    )
