"""Cuts checkpoints while a session is recorded (cassette-v7 §9.6, §10, §11). Observes, and never pauses anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cassettes.core.activity import CONTRACT, ActivityEvent
from cassettes.core.address import EntityAddress, ObservationPosition, UnitPosition, address_key
from cassettes.core.checkpoints import (
    TERMINAL_KINDS,
    Checkpoint,
    CheckpointPlan,
    Cursor,
    Predicate,
    ProviderPosition,
    Readiness,
    Trigger,
    append_checkpoint,
    bootstrap_plan,
    checkpoint_id,
    merge,
)
from cassettes.core.observation import Correlation, JournalEntry, JournalObservation, fingerprint
from cassettes.core.state import ReplayState
from cassettes.host.host import Host
from cassettes.host.model import Commit, InteractionRow, MessageRow, SessionRow, TurnRow
from cassettes.host.readiness import Binding, holds
from cassettes.recording.cuts import boundary_cut, observed_cut
from cassettes.session.identity import BindingTable, root_address
from cassettes.session.observe import Entity, ObservedFact, observation_of
from cassettes.session.ports import Unit, UnitEvent

JsonObject = dict[str, Any]
Position = tuple[int, int]
WriteEntry = Callable[[JournalEntry], object]


class CheckpointRecorder:
    """Pairs what the provider did with what was committed, and cuts where both agree.

    `accepted` gives the last accepted activity sequence; `write_entry` takes each journal entry.
    """

    def __init__(
        self,
        host: Host,
        root_session_id: str,
        *,
        accepted: Callable[[], int],
        write_entry: WriteEntry,
        initial: ReplayState | None = None,
    ) -> None:
        self.plan = bootstrap_plan()
        self._bindings = BindingTable(root_session_id)
        if initial is not None:
            self._bindings.seed(initial)
        self._host = host
        self._root = root_session_id
        self._accepted = accepted
        self._write_entry = write_entry
        self._observed: dict[str, Position] = {}  # last unit with an observation
        self._handled: dict[str, Position] = {}  # last unit of all
        self._handled_at: list[dict[str, Position]] = [{}]  # for each checkpoint: what was handled when it was cut
        self._waiting: set[str] = set()  # intents that may have effects and have none yet
        self._causes: dict[int, int] = {}  # sequence of an effect -> sequence of its cause
        self._sequences: dict[str, int] = {}  # event id -> sequence
        self._last_cut = 0

    # ------------------------------------------------------------------ provider

    def on_unit(self, unit: Unit, events: Sequence[UnitEvent], commit: Commit) -> None:
        """A unit was handled and its events are committed: journal it, and cut a checkpoint where one stands."""
        position = (unit.chunk_seq, unit.unit_index)
        self._handled[unit.connection_id] = position
        candidate: Checkpoint | None = None
        entry = JournalEntry(
            position=UnitPosition(unit.connection_id, unit.chunk_seq, unit.unit_index), unit_kind=unit.kind
        )
        for numbered in events:
            fact = observation_of(numbered.event)
            if fact is None:
                continue
            at = ObservationPosition(unit.connection_id, unit.chunk_seq, unit.unit_index, numbered.index)
            addresses = self._bindings.observe(fact, at)
            mark = fingerprint(fact.type, addresses[-1], fact.stable)
            entry.observations.append(JournalObservation(at, fact.type, mark, addresses[-1]))
            confirmed = _confirms(commit, fact)
            entry.commit_correlations.append(_correlation(at, fact, addresses[-1], mark, commit if confirmed else None))
            if confirmed:
                candidate = self._joined(candidate, self._observed_checkpoint(unit, at, fact, addresses, mark))
        self._write_entry(entry)
        if entry.observations:
            self._observe(unit.connection_id, position)
        if candidate is not None:
            candidate.cursor = self._cursor(max(self._accepted(), 1), self._observed)
            self._append(candidate)

    def _observed_checkpoint(
        self, unit: Unit, at: ObservationPosition, fact: ObservedFact, addresses: list[EntityAddress], mark: str
    ) -> Checkpoint | None:
        cut = observed_cut(fact)
        if cut is None:
            return None
        subjects = addresses if fact.type == "attachment.materialized" else addresses[-1:]
        predicates = []
        for number, (subject, entity) in enumerate(zip(subjects, fact.entities[-len(subjects) :], strict=True)):
            if fact.type == "attachment.materialized" and subject.kind != "attachment":
                continue
            predicate = Predicate(cut.predicate, number, cut.equals)
            if self._holds(predicate, entity):
                predicates.append(predicate)
        if not predicates:
            return None
        trigger = Trigger(
            source="provider-observation", position=at, unit_kind=unit.kind, type=fact.type, fingerprint=mark
        )
        return Checkpoint(
            kind=cut.kind,
            tags=[cut.kind],
            trigger=trigger,
            subjects=list(subjects),
            readiness=Readiness(predicates),
        )

    def _joined(self, left: Checkpoint | None, right: Checkpoint | None) -> Checkpoint | None:
        """One candidate a unit: its observations joined in order."""
        if left is None or right is None:
            return left or right
        merge(left, right)
        return left

    def _observe(self, connection_id: str, position: Position) -> None:
        """The observation lane moves; a connection seen for the first time enters all earlier cursors."""
        first = connection_id not in self._observed
        self._observed[connection_id] = position
        if not first:
            return
        for checkpoint, handled in zip(self.plan.checkpoints, self._handled_at, strict=True):
            chunk, unit = handled.get(connection_id, (0, 0))
            positions = [*checkpoint.cursor.provider_connections, ProviderPosition(connection_id, chunk, unit)]
            checkpoint.cursor = Cursor(checkpoint.cursor.activity_event_sequence, _ordered(positions))

    # ------------------------------------------------------------------ activity

    def on_event(self, event: ActivityEvent, sequence: int) -> None:
        """An activity event was accepted under `sequence`: cut where a batch is complete."""
        self._sequences[event.event_id] = sequence
        contract = CONTRACT.intent(event.type) if event.kind == "intent" else None
        if contract is not None and contract.effects:
            self._waiting.add(event.event_id)
        if event.kind == "effect":
            self._waiting.discard(event.caused_by_event_id)
            self._causes[sequence] = self._sequences.get(event.caused_by_event_id, 0)
        if self._waiting or sequence <= self._last_cut:
            return
        self._last_cut = sequence
        cut = boundary_cut(event)
        subject = self._boundary_subject(event, cut.subject) if cut is not None else None
        if cut is None or subject is None:
            return
        entity, address = subject
        predicates = [
            Predicate(name, 0, equals)
            for name, equals in cut.predicates
            if self._holds(Predicate(name, 0, equals), entity) or name in _FROM_EXPECTED
        ]
        if not predicates:
            return
        trigger = Trigger(
            source="activity-boundary", after_activity_event_sequence=sequence, boundary_kind="intent-effects"
        )
        if event.kind == "direct-stimulus":
            trigger.boundary_kind = "single-event"
        candidate = Checkpoint(
            kind=cut.kinds[0],
            tags=list(cut.kinds),
            trigger=trigger,
            subjects=[address],
            readiness=Readiness(predicates),
        )
        lanes = {name: max(position, self._handled.get(name, (0, 0))) for name, position in self._observed.items()}
        candidate.cursor = self._cursor(sequence, lanes)
        self._append(candidate)

    def _boundary_subject(self, event: ActivityEvent, kind: str) -> tuple[Entity, EntityAddress] | None:
        payload = event.payload or {}
        session_id = event.agent_session_id
        if kind == "session":
            entity = Entity(kind="session", session_id=session_id)
            address = root_address() if session_id == self._root else self._bindings.address_of(entity)
            return (entity, address) if address is not None else None
        turn_id = str(payload.get("turnId") or "")
        if kind == "turn":
            entity = Entity(kind="turn", session_id=session_id, turn_id=turn_id)
        else:
            row = self._host.interaction(session_id, turn_id, str(payload.get("requestId") or ""))
            if row is None:
                return None
            entity = Entity(
                kind="interaction",
                session_id=session_id,
                turn_id=turn_id,
                entity_id=row.request_id,
                interaction_kind=row.kind,
            )
        address = self._bindings.address_of(entity)
        return (entity, address) if address is not None else None

    # ------------------------------------------------------------------ the plan

    def finished_plan(self) -> CheckpointPlan:
        """The plan to publish: no cut splits an intent from its effects, and the last one is terminal."""
        kept = [one for one in self.plan.checkpoints if not self._splits(one)]
        while len(kept) > 1 and kept[-1].kind not in TERMINAL_KINDS:
            kept.pop()
        for index, checkpoint in enumerate(kept):
            checkpoint.index, checkpoint.id = index, checkpoint_id(index)
        self.plan.checkpoints = kept
        return self.plan

    def _splits(self, checkpoint: Checkpoint) -> bool:
        if checkpoint.trigger.source != "activity-boundary":
            return False
        at = checkpoint.trigger.after_activity_event_sequence
        return any(effect > at >= cause > 0 for effect, cause in self._causes.items())

    def _append(self, candidate: Checkpoint) -> None:
        before = len(self.plan.checkpoints)
        append_checkpoint(self.plan, candidate)
        if len(self.plan.checkpoints) > before:
            self._handled_at.append(dict(self._handled))
        else:
            self._handled_at[-1] = dict(self._handled)

    def _cursor(self, sequence: int, lanes: dict[str, Position]) -> Cursor:
        last = self.plan.checkpoints[-1].cursor
        positions = []
        for connection_id, lane in lanes.items():
            known = last.position(connection_id)
            before = (known.chunk_seq, known.unit_index) if known is not None else (0, 0)
            chunk, unit = max(lane, before)
            positions.append(ProviderPosition(connection_id, chunk, unit))
        return Cursor(max(sequence, last.activity_event_sequence), _ordered(positions))

    def _holds(self, predicate: Predicate, entity: Entity) -> bool:
        binding = Binding(
            session_id=entity.session_id,
            turn_id=entity.turn_id,
            entity_id=entity.entity_id,
            message_id=entity.message_id,
            ordinal=entity.ordinal,
            kind=entity.kind,
        )
        return holds(self._host, predicate, binding, None, "")


_FROM_EXPECTED = frozenset({"settings.equal", "project.binding"})  # compared with the final state, not known yet


def _ordered(positions: list[ProviderPosition]) -> list[ProviderPosition]:
    return sorted(positions, key=lambda one: one.connection_id.encode())


def _correlation(
    at: ObservationPosition, fact: ObservedFact, address: EntityAddress, mark: str, commit: Commit | None
) -> Correlation:
    prefix = fact.type.partition(".")[0]
    kinds = {"session": "session", "interaction": "interaction", "call": "call"}
    kind = kinds.get(prefix, "message" if prefix in ("plan", "compaction", "attachment") else "turn")
    if fact.terminal:
        expected = fact.outcome or fact.status or "completed"
    else:
        expected = fact.status or fact.phase or fact.outcome or fact.type
    unit = f"{at.connection_id}:{at.chunk_seq}:{at.unit_index}:{at.event_index}"
    return Correlation(
        id=f"{unit}:{fact.type}:{address_key(address)}:{expected}",
        kind=kind,
        address=address,
        observation_position=at,
        observation_fingerprint=mark,
        expected=expected,
        confirmed=commit is not None,
        transaction_id=commit.txn_id if commit is not None else "",
    )


def _confirms(commit: Commit, fact: ObservedFact) -> bool:
    """Does the unit's commit show a change of the observed entity? (cassette-v7 §11.1)"""
    if not commit.txn_id:
        return False
    subject = fact.subject
    for mutation in commit.mutations:
        row = mutation.value
        if isinstance(row, TurnRow):
            same = fact.subject.kind == "turn" and (row.session_id, row.id) == (subject.session_id, subject.turn_id)
        elif isinstance(row, InteractionRow):
            key = (row.session_id, row.turn_id, row.request_id)
            same = subject.kind == "interaction" and key == (subject.session_id, subject.turn_id, subject.entity_id)
        elif isinstance(row, SessionRow):
            same = subject.kind == "session" and row.id == subject.session_id
        elif isinstance(row, MessageRow):
            same = _is_message_of(row, fact)
        else:
            same = False
        if same:
            return True
    return False


def _is_message_of(row: MessageRow, fact: ObservedFact) -> bool:
    subject = fact.subject
    if row.session_id != subject.session_id or (subject.turn_id and row.turn_id != subject.turn_id):
        return False
    if subject.kind == "tool-call":
        return row.payload.get("callId") == subject.entity_id
    return bool(subject.message_id) and row.id == subject.message_id
