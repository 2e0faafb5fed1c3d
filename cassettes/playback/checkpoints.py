"""Have the facts that a checkpoint stands for come true? (replay-state §16)"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from cassettes.core.address import EntityAddress, ObservationPosition
from cassettes.core.checkpoints import Checkpoint, CheckpointPlan
from cassettes.core.errors import Place, ReplayFailed
from cassettes.core.observation import fingerprint
from cassettes.core.state import ReplayState
from cassettes.host.host import Host
from cassettes.host.readiness import Binding, holds
from cassettes.playback.barrier import Position
from cassettes.session.identity import BindingTable
from cassettes.session.observe import Entity, ObservedFact, observation_of
from cassettes.session.ports import Unit, UnitEvent

_STARTED = {"turn.started", "root_provider_turn.started"}
_UnitKey = tuple[str, int, int]


class Verified(msgspec.Struct, frozen=True):
    """State of one checkpoint: its trigger was seen, its readiness predicates hold; `missing` says what does not."""

    trigger: bool
    readiness: bool
    missing: str = ""


class CheckpointVerifier:
    """Matches observations with triggers and evaluates readiness. A contradiction is remembered and ends the replay."""

    def __init__(
        self,
        plan: CheckpointPlan,
        host: Host,
        root_session_id: str,
        expected: ReplayState | None,
        replay_root: str,
    ) -> None:
        self.plan = plan
        self.bindings = BindingTable(root_session_id)
        self._host = host
        self._root = root_session_id
        self._expected = expected
        self._replay_root = replay_root
        self._matched: set[int] = set()
        self._by_unit: dict[_UnitKey, list[Checkpoint]] = defaultdict(list)
        self._starts: dict[str, list[ObservationPosition]] = defaultdict(list)
        for checkpoint in plan.checkpoints:
            position = checkpoint.trigger.position
            if checkpoint.trigger.source == "provider-observation" and position is not None:
                self._by_unit[_unit_key(position)].append(checkpoint)
                if checkpoint.trigger.type in _STARTED:
                    self._starts[position.connection_id].append(position)

    def on_unit(self, unit: Unit, events: Sequence[UnitEvent]) -> None:
        """Bind what a unit showed, and compare it with the triggers that stand in it."""
        waiting = self._by_unit.get((unit.connection_id, unit.chunk_seq, unit.unit_index), [])
        for numbered in events:
            fact = observation_of(numbered.event)
            if fact is None:
                continue
            position = ObservationPosition(unit.connection_id, unit.chunk_seq, unit.unit_index, numbered.index)
            address = self.bindings.observe(fact, position, self._birth)[-1]
            for checkpoint in waiting:
                if checkpoint.trigger.position == position:
                    self._compare(checkpoint, unit, fact, address)
        for checkpoint in waiting:
            if checkpoint.index not in self._matched:
                raise self._failed(
                    checkpoint, "checkpoint_trigger_missing", "the unit of the trigger came without its observation"
                )

    def verify(self, checkpoint: Checkpoint, handled: dict[str, Position]) -> Verified:
        """May the checkpoint count as reached now? A pure read."""
        if not self._triggered(checkpoint, handled):
            return Verified(False, False, "its trigger")
        if not checkpoint.readiness.all:
            return Verified(True, True)
        if self._host.session(self._root) is None:
            return Verified(True, False, "the root session")
        for predicate in checkpoint.readiness.all:
            subject = checkpoint.subjects[predicate.subject]
            entity = self._subject(subject, checkpoint)
            ready = entity is not None and holds(
                self._host, predicate, _binding(entity), self._expected, self._replay_root
            )
            if not ready:
                return Verified(True, False, f"{predicate.type} = {predicate.equals}")
        return Verified(True, True)

    def _triggered(self, checkpoint: Checkpoint, handled: dict[str, Position]) -> bool:
        position = checkpoint.trigger.position
        if checkpoint.trigger.source != "provider-observation" or position is None or checkpoint.index in self._matched:
            return True
        unit = (position.chunk_seq, position.unit_index)
        at = handled.get(position.connection_id, (0, 0))
        if at > unit:
            raise self._failed(checkpoint, "checkpoint_trigger_out_of_order", "the trigger's unit passed unmatched")
        return at == unit  # a lost observation stamp: readiness decides

    def _compare(self, checkpoint: Checkpoint, unit: Unit, fact: ObservedFact, address: EntityAddress) -> None:
        trigger = checkpoint.trigger
        pairs = (
            ("unit kind", trigger.unit_kind, unit.kind),
            ("type", trigger.type, fact.type),
            ("fingerprint", trigger.fingerprint, fingerprint(fact.type, address, fact.stable)),
        )
        for name, expected, found in pairs:
            if expected != found:
                message = f"the observation has another {name}"
                raise self._failed(checkpoint, "checkpoint_trigger_mismatch", message, expected, found)
        self._matched.add(checkpoint.index)

    def _birth(self, fact: ObservedFact, position: ObservationPosition) -> ObservationPosition:
        """Where the recording saw this Turn begin (cassette-v7 §8.1, turn birth)."""
        if fact.type in _STARTED:
            return position
        for checkpoint in self._by_unit.get(_unit_key(position), []):
            if checkpoint.trigger.position != position:
                continue
            for subject in checkpoint.subjects:
                origin = subject.origin.provider_observation
                if subject.kind == "turn" and origin is not None:
                    return origin
        earlier = [one for one in self._starts.get(position.connection_id, []) if _order(one) <= _order(position)]
        return max(earlier, key=_order) if earlier else position

    def _subject(self, address: EntityAddress, checkpoint: Checkpoint) -> Entity | None:
        entity = self.bindings.entity_of(address)
        if entity is not None:
            return entity
        origin = address.origin
        if origin.source == "activity-event":
            if address.kind != "goal":
                raise self._failed(
                    checkpoint, "checkpoint_identity_unresolved", f"a {address.kind} cannot be bound to an event"
                )
            return Entity(kind="goal", session_id=self._root)
        if address.kind == "turn" and origin.source == "provider-observation":
            active = self._host.active_turn(self._root)
            return Entity(kind="turn", session_id=self._root, turn_id=active.id if active else "")
        return None

    def _failed(
        self, checkpoint: Checkpoint, code: str, message: str, expected: object = None, found: object = None
    ) -> ReplayFailed:
        trigger = checkpoint.trigger.position
        path = f"$.checkpoints[{checkpoint.index}].trigger"
        where = f"{checkpoint.id} ({checkpoint.kind})"
        at = f", {trigger.connection_id} chunk {trigger.chunk_seq} unit {trigger.unit_index}" if trigger else ""
        return ReplayFailed(
            f"{where}: {message}{at}",
            code=code,
            place=Place(file="checkpoint-plan.json", path=path),
            expected=expected,
            found=found,
        )


def _unit_key(position: ObservationPosition) -> _UnitKey:
    return (position.connection_id, position.chunk_seq, position.unit_index)


def _order(position: ObservationPosition) -> tuple[int, int, int]:
    return (position.chunk_seq, position.unit_index, position.event_index)


def _binding(entity: Entity) -> Binding:
    return Binding(
        session_id=entity.session_id,
        turn_id=entity.turn_id,
        entity_id=entity.entity_id,
        message_id=entity.message_id,
        ordinal=entity.ordinal,
        kind=entity.kind,
    )
