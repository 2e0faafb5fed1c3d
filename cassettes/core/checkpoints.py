"""The checkpoint plan: where a replay may stop, and which facts hold there (cassette-v7 §9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import msgspec

from cassettes.core.activity import ActivityEvent, Timeline
from cassettes.core.address import EntityAddress, ObservationPosition, check_address
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.manifest import SCHEMA_VERSION
from cassettes.core.policy import POLICY
from cassettes.core.records import Record, Value, decode_record, indented_bytes, present

PLAN_SCHEMA_VERSION = 2
OBSERVATION_SCHEMA_VERSION = 2
PLAN_FILE = POLICY.files.checkpoint_plan.path
BOOTSTRAP = "replay.bootstrap"

KINDS = frozenset(
    [
        "replay.bootstrap",
        "session.ready",
        "turn.working",
        "turn.canceled",
        "turn.terminal",
        "interaction.pending",
        "interaction.resolved",
        "interaction.superseded",
        "plan.waiting",
        "plan.feedback-submitted",
        "plan.confirmed",
        "plan.superseded",
        "tool.started",
        "tool.completed",
        "queue.stable",
        "settings.applied",
        "submission.accepted",
        "response.committed",
        "goal.running",
        "goal.paused",
        "goal.completed",
        "goal.cleared",
        "compaction.running",
        "compaction.canceled",
        "compaction.completed",
        "child-session.running",
        "child-session.completed",
        "attachment.materialized",
        "project.binding-ready",
    ]
)
TERMINAL_KINDS = frozenset(
    [
        "turn.terminal",
        "turn.canceled",
        "goal.completed",
        "goal.cleared",
        "child-session.completed",
        "compaction.completed",
        "compaction.canceled",
    ]
)
PREDICATES = frozenset(
    [
        "session.exists",
        "session.status",
        "session.queue-empty",
        "turn.phase",
        "turn.status",
        "interaction.status",
        "call.status",
        "plan.status",
        "goal.status",
        "settings.equal",
        "attachment.materialized",
        "compaction.status",
        "child-session.status",
        "project.binding",
    ]
)
UNIT_KINDS = frozenset({"protocol-message", "mapped-stderr-message", "process-exit"})
BOUNDARY_KINDS = frozenset({"intent-effects", "single-event"})
_PRIORITIES = {
    "turn.terminal": 60,
    "turn.canceled": 60,
    "goal.completed": 60,
    "goal.cleared": 60,
    "child-session.completed": 60,
    "interaction.pending": 50,
    "interaction.superseded": 50,
    "plan.waiting": 45,
    "tool.completed": 40,
    "tool.started": 30,
    "turn.working": 10,
    "compaction.completed": 8,
    "compaction.canceled": 8,
    "project.binding-ready": 5,
}
_RESOLUTIONS = frozenset({"interaction.resolved", "interaction.superseded"})
_TURN_PHASES = {
    "working": "running",
    "streaming": "running",
    "waiting_approval": "waiting",
    "awaiting_approval": "waiting",
    "waiting_input": "waiting",
    "idle": "settled",
}
_RUNNING_CALLS = frozenset(
    ["working", "streaming", "in_progress", "pending", "waiting_approval", "awaiting_approval", "waiting_input"]
)


class ProviderPosition(Value, frozen=True):
    """How far one connection is; 0/0 = nothing handled yet."""

    connection_id: str = ""
    chunk_seq: int = 0
    unit_index: int = 0


class Cursor(Record):
    """A vector: the activity lane, and one unit position for each connection in byte order of the ids."""

    activity_event_sequence: int = 0
    provider_connections: list[ProviderPosition] = msgspec.field(default_factory=list)

    def position(self, connection_id: str) -> ProviderPosition | None:
        """Position of one connection."""
        return next((one for one in self.provider_connections if one.connection_id == connection_id), None)


class Trigger(Record):
    """What makes the checkpoint come."""

    omit_empty: ClassVar[frozenset[str]] = frozenset(
        {"afterActivityEventSequence", "boundaryKind", "position", "unitKind", "type", "fingerprint"}
    )
    source: str = ""
    after_activity_event_sequence: int = 0
    boundary_kind: str = ""
    position: ObservationPosition | None = None
    unit_kind: str = ""
    type: str = ""
    fingerprint: str = ""


class Predicate(Record):
    """A fact about one subject."""

    type: str = ""
    subject: int = 0
    equals: str = ""


class Readiness(Record):
    """All facts that must hold."""

    all: list[Predicate] = msgspec.field(default_factory=list)


class Checkpoint(Record):
    """One stop."""

    id: str = ""
    index: int = 0
    kind: str = ""
    tags: list[str] = msgspec.field(default_factory=list)
    cursor: Cursor = msgspec.field(default_factory=Cursor)
    trigger: Trigger = msgspec.field(default_factory=Trigger)
    subjects: list[EntityAddress] = msgspec.field(default_factory=list)
    readiness: Readiness = msgspec.field(default_factory=Readiness)


class CheckpointPlan(Record):
    """`checkpoint-plan.json`."""

    schema_version: int = PLAN_SCHEMA_VERSION
    cassette_schema_version: int = SCHEMA_VERSION
    observation_schema_version: int = OBSERVATION_SCHEMA_VERSION
    checkpoints: list[Checkpoint] = msgspec.field(default_factory=list)


class _ReadPlan(Record):
    """The plan as it is read: a missing version is 0, not ours."""

    schema_version: int = 0
    cassette_schema_version: int = 0
    observation_schema_version: int = 0
    checkpoints: list[Checkpoint] = msgspec.field(default_factory=list)


def bootstrap_plan() -> CheckpointPlan:
    """The plan that every recording starts with."""
    checkpoint = Checkpoint(
        id=checkpoint_id(0), index=0, kind=BOOTSTRAP, tags=[BOOTSTRAP], trigger=Trigger(source="bootstrap")
    )
    return CheckpointPlan(checkpoints=[checkpoint])


def checkpoint_id(index: int) -> str:
    """`checkpoint-0007`."""
    return f"checkpoint-{index:04d}"


def decode_plan(data: bytes) -> CheckpointPlan:
    """The bytes of the plan as a record; its rules are checked by `check_plan`."""
    read = decode_record(_ReadPlan, data, file=PLAN_FILE)
    return CheckpointPlan(
        read.schema_version, read.cassette_schema_version, read.observation_schema_version, read.checkpoints
    )


def encode_plan(plan: CheckpointPlan) -> bytes:
    """The exact bytes of the plan."""
    return indented_bytes(plan)


def fold_turn_phase(phase: str) -> str:
    """An activity word as a canonical Turn phase."""
    trimmed = phase.strip()
    return _TURN_PHASES.get(trimmed, trimmed)


def fold_call_status(status: str) -> str:
    """An activity word as a canonical call status."""
    trimmed = status.strip()
    return "running" if trimmed in _RUNNING_CALLS else trimmed


def is_fingerprint(text: str) -> bool:
    """`sha256:` and 64 hex digits."""
    digits = text.removeprefix("sha256:")
    return text.startswith("sha256:") and len(digits) == 64 and all(mark in "0123456789abcdef" for mark in digits)


def priority(kind: str) -> int:
    """Rank of a kind when checkpoints at one cursor are joined (§9.5)."""
    return _PRIORITIES.get(kind, 0)


# ---------------------------------------------------------------------- building


def append_checkpoint(plan: CheckpointPlan, candidate: Checkpoint) -> Checkpoint:
    """Add a cut to the plan: join it with the last one at the same cursor, or number it (§9.5).

    A resolution that follows a terminal is folded into it only where the terminal was triggered by the provider: an
    activity trigger must stay at its own cursor.
    """
    last = plan.checkpoints[-1]
    if last.cursor == candidate.cursor:
        merge(last, candidate)
        return last
    folds = last.kind in TERMINAL_KINDS and candidate.kind in _RESOLUTIONS
    if folds and last.trigger.source == "provider-observation":
        kind, trigger = last.kind, last.trigger
        merge(last, candidate)
        last.kind, last.trigger = kind, trigger
        return last
    candidate.index = len(plan.checkpoints)
    candidate.id = checkpoint_id(candidate.index)
    plan.checkpoints.append(candidate)
    return candidate


def merge(left: Checkpoint, right: Checkpoint) -> None:
    """Join `right` into `left`; the kind of higher priority keeps its trigger, the cursor becomes right's."""
    left.tags += [tag for tag in right.tags if tag not in left.tags]
    places = []
    for subject in right.subjects:
        if subject not in left.subjects:
            left.subjects.append(subject)
        places.append(left.subjects.index(subject))
    for predicate in right.readiness.all:
        place = places[predicate.subject] if predicate.subject < len(places) else -1
        left.readiness.all.append(Predicate(predicate.type, place, predicate.equals))
    if priority(right.kind) > priority(left.kind):
        left.kind, left.trigger = right.kind, right.trigger
    left.cursor = right.cursor


# ---------------------------------------------------------------------- checking


def check_plan(
    plan: CheckpointPlan,
    connections: Collection[str] | None,
    events: Sequence[ActivityEvent] | None,
    *,
    initial_paths: Collection[str] | None = None,
) -> None:
    """The rules of §9.4, in order. `connections` and `events` may be unknown while recording.

    With `initial_paths` (JSON pointers that the initial state resolves; empty without one) addresses into the
    initial state are checked too (H9).
    """
    versions = (
        ("schemaVersion", plan.schema_version, PLAN_SCHEMA_VERSION),
        ("cassetteSchemaVersion", plan.cassette_schema_version, SCHEMA_VERSION),
        ("observationSchemaVersion", plan.observation_schema_version, OBSERVATION_SCHEMA_VERSION),
    )
    for name, found, expected in versions:
        if found != expected:
            raise _invalid(f"$.{name}", "another version", expected, found)
    if not plan.checkpoints:
        raise _invalid("$.checkpoints", "there is no checkpoint")
    if connections is not None and not all(present(one) for one in connections):
        raise _invalid("$", "a connection of the tape has no id")
    if events is not None:
        timeline = Timeline()
        for event in events:
            timeline.accept(event)
        timeline.require_complete()
    previous: Checkpoint | None = None
    for index, checkpoint in enumerate(plan.checkpoints):
        _Check(checkpoint, index, previous, connections, events, initial_paths).run()
        previous = checkpoint
    if plan.checkpoints[0].trigger.source != "bootstrap":
        raise _invalid("$.checkpoints[0].trigger", "the first checkpoint is no bootstrap")


def check_published(plan: CheckpointPlan) -> None:
    """A plan is published only when its last checkpoint is terminal."""
    last = plan.checkpoints[-1]
    if last.kind not in TERMINAL_KINDS:
        raise _invalid(f"$.checkpoints[{last.index}].kind", "the last checkpoint is not terminal", None, last.kind)


class _Check:
    """The rules of one checkpoint."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        index: int,
        previous: Checkpoint | None,
        connections: Collection[str] | None,
        events: Sequence[ActivityEvent] | None,
        initial_paths: Collection[str] | None,
    ) -> None:
        self.checkpoint = checkpoint
        self.index = index
        self.previous = previous
        self.connections = connections
        self.events = events
        self.initial_paths = initial_paths
        self.path = f"$.checkpoints[{index}]"

    def run(self) -> None:
        one = self.checkpoint
        if one.index != self.index:
            raise _invalid(f"{self.path}.index", "the index is not its position", self.index, one.index)
        if one.id != checkpoint_id(self.index):
            raise _invalid(f"{self.path}.id", "the id is not that of its index", checkpoint_id(self.index), one.id)
        if one.kind not in KINDS:
            raise _invalid(f"{self.path}.kind", "the kind is unknown", None, one.kind)
        if one.kind not in one.tags:
            raise _invalid(f"{self.path}.tags", "the kind is not among the tags", one.kind, one.tags)
        self._cursor()
        self._trigger()
        self._subjects()
        self._readiness()

    def _cursor(self) -> None:
        cursor, previous = self.checkpoint.cursor, self.previous.cursor if self.previous else None
        path = f"{self.path}.cursor"
        if previous is not None and cursor.activity_event_sequence < previous.activity_event_sequence:
            raise _invalid(
                f"{path}.activityEventSequence",
                "the activity cursor goes back",
                f"at least {previous.activity_event_sequence}",
                cursor.activity_event_sequence,
            )
        last = b""
        for number, position in enumerate(cursor.provider_connections):
            key = position.connection_id.encode("utf-8", "surrogatepass")
            if not present(position.connection_id) or (number and key <= last):
                raise _invalid(f"{path}.providerConnections[{number}]", "connections are not in strict byte order")
            last = key
            if self.connections is not None and position.connection_id not in self.connections:
                raise _invalid(
                    f"{path}.providerConnections[{number}].connectionId",
                    "the connection is not on the tape",
                    None,
                    position.connection_id,
                )
        for position in previous.provider_connections if previous else []:
            now = cursor.position(position.connection_id)
            if now is None or (now.chunk_seq, now.unit_index) < (position.chunk_seq, position.unit_index):
                raise _invalid(
                    f"{path}.providerConnections",
                    f"{position.connection_id} is missing or goes back",
                    f"at least {position.chunk_seq}/{position.unit_index}",
                    None if now is None else f"{now.chunk_seq}/{now.unit_index}",
                )
        if previous == cursor:
            raise _invalid(path, "the cursor equals the previous one; such stops are one checkpoint")
        if self.events and cursor.activity_event_sequence > len(self.events):
            raise _invalid(
                f"{path}.activityEventSequence",
                "the cursor is beyond the last event",
                f"at most {len(self.events)}",
                cursor.activity_event_sequence,
            )

    def _trigger(self) -> None:
        trigger = self.checkpoint.trigger
        path = f"{self.path}.trigger"
        if trigger.source == "bootstrap":
            if trigger.position is not None or trigger.after_activity_event_sequence:
                raise _invalid(path, "a bootstrap has no position")
            if self.index:
                raise _invalid(f"{path}.source", "only the first checkpoint is a bootstrap")
        elif trigger.source == "activity-boundary":
            self._boundary(trigger, path)
        elif trigger.source == "provider-observation":
            self._observation(trigger, path)
        else:
            raise _invalid(f"{path}.source", "the source is unknown", None, trigger.source)

    def _boundary(self, trigger: Trigger, path: str) -> None:
        sequence = trigger.after_activity_event_sequence
        cursor = self.checkpoint.cursor.activity_event_sequence
        if sequence == 0 or sequence != cursor:
            raise _invalid(f"{path}.afterActivityEventSequence", "not at the activity cursor", cursor, sequence)
        if trigger.boundary_kind not in BOUNDARY_KINDS:
            raise _invalid(f"{path}.boundaryKind", "the boundary kind is unknown", None, trigger.boundary_kind)
        if self.events is None:
            return
        if sequence > len(self.events):
            raise _invalid(f"{path}.afterActivityEventSequence", "beyond the last event", len(self.events), sequence)
        before = {one.event_id.strip() for one in self.events[:sequence]}
        for event in self.events[sequence:]:
            if event.kind == "effect" and event.caused_by_event_id.strip() in before:
                raise _invalid(
                    f"{path}.afterActivityEventSequence",
                    f"the cut splits event {event.sequence} from the intent that caused it",
                )

    def _observation(self, trigger: Trigger, path: str) -> None:
        position = trigger.position
        if position is None or not present(trigger.type) or not is_fingerprint(trigger.fingerprint):
            raise _invalid(path, "position, type or fingerprint is missing or malformed")
        if trigger.unit_kind not in UNIT_KINDS:
            raise _invalid(f"{path}.unitKind", "the unit kind is unknown", None, trigger.unit_kind)
        at = self.checkpoint.cursor.position(position.connection_id)
        after = at is None or (position.chunk_seq, position.unit_index) > (at.chunk_seq, at.unit_index)
        complete = position.chunk_seq and position.unit_index and position.event_index
        if after or not complete:
            raise _invalid(
                f"{path}.position",
                "the trigger is not at or before the cursor of its connection",
                None if at is None else f"at most {at.chunk_seq}/{at.unit_index}",
                f"{position.connection_id} {position.chunk_seq}/{position.unit_index}/{position.event_index}",
            )

    def _subjects(self) -> None:
        seen: list[EntityAddress] = []
        for number, subject in enumerate(self.checkpoint.subjects):
            path = f"{self.path}.subjects[{number}]"
            try:
                check_address(subject, file=PLAN_FILE, path=path)
            except CassetteRejected as rejected:
                raise _invalid(rejected.place.path, rejected.message) from None
            if subject in seen:
                raise _invalid(path, "the subject is given twice")
            seen.append(subject)
            self._dangling(subject, path)

    def _dangling(self, subject: EntityAddress, path: str) -> None:
        """An address must name a fact that this Cassette has (H9)."""
        origin = subject.origin
        if origin.source == "activity-event" and self.events is not None:
            if origin.activity_event_sequence > len(self.events):
                raise _invalid(
                    f"{path}.origin.activityEventSequence",
                    "beyond the last event",
                    f"at most {len(self.events)}",
                    origin.activity_event_sequence,
                )
        elif origin.source == "provider-observation" and self.connections is not None:
            position = origin.provider_observation
            if position is not None and position.connection_id not in self.connections:
                raise _invalid(
                    f"{path}.origin.providerObservation.connectionId",
                    "the connection is not on the tape",
                    None,
                    position.connection_id,
                )
        elif (
            origin.source == "initial-state"
            and self.initial_paths is not None
            and origin.initial_state_path not in self.initial_paths
        ):
            raise _invalid(
                f"{path}.origin.initialStatePath",
                "the initial state has nothing there",
                None,
                origin.initial_state_path,
            )

    def _readiness(self) -> None:
        for number, predicate in enumerate(self.checkpoint.readiness.all):
            path = f"{self.path}.readiness.all[{number}]"
            if predicate.type not in PREDICATES:
                raise _invalid(f"{path}.type", "the predicate is unknown", None, predicate.type)
            if not 0 <= predicate.subject < len(self.checkpoint.subjects):
                raise _invalid(
                    f"{path}.subject", "no such subject", f"below {len(self.checkpoint.subjects)}", predicate.subject
                )
            if not present(predicate.equals):
                raise _invalid(f"{path}.equals", "the expected value is blank")


def _invalid(path: str, detail: str, expected: object = None, found: object = None) -> CassetteRejected:
    return CassetteRejected(
        f"checkpoint plan: {detail}",
        code="checkpoint_plan_invalid",
        place=Place(PLAN_FILE, 0, path),
        expected=expected,
        found=found,
    )
