"""Which runtime entity is which entity of the Cassette (cassette-v7 §8, replay-state §10.3)."""

from __future__ import annotations

from collections.abc import Callable

from cassettes.core.address import EntityAddress, ObservationPosition, Origin, goal_discriminator
from cassettes.core.errors import ReplayFailed
from cassettes.core.state import ReplayState
from cassettes.session.observe import Entity, ObservedFact

BirthOf = Callable[[ObservedFact, ObservationPosition], ObservationPosition]


class BindingTable:
    """Runtime keys ↔ addresses of one Cassette. The first fact wins; a contradiction is refused."""

    def __init__(self, root_session_id: str) -> None:
        self._address_by_runtime: dict[tuple[str, ...], EntityAddress] = {}
        self._entity_by_address: dict[EntityAddress, Entity] = {}
        self.bind(Entity(kind="session", session_id=root_session_id), root_address())

    def address_of(self, entity: Entity) -> EntityAddress | None:
        """The address of a bound entity."""
        return self._address_by_runtime.get(entity.key)

    def entity_of(self, address: EntityAddress) -> Entity | None:
        """The runtime entity bound to an address."""
        return self._entity_by_address.get(address)

    def bind(self, entity: Entity, address: EntityAddress) -> EntityAddress:
        """Bind, or return the address that is bound already; `checkpoint_identity_unresolved` on a contradiction."""
        known = self._address_by_runtime.get(entity.key)
        if known is not None:
            return known
        other = self._entity_by_address.get(address)
        if other is not None and other.key != entity.key:
            raise ReplayFailed(
                "two entities claim one address of the Cassette",
                code="checkpoint_identity_unresolved",
                expected=" ".join(other.key),
                found=" ".join(entity.key),
            )
        self._address_by_runtime[entity.key] = address
        self._entity_by_address[address] = entity
        return address

    def observe(
        self, fact: ObservedFact, position: ObservationPosition, birth_of: BirthOf | None = None
    ) -> list[EntityAddress]:
        """Bind every entity of an observation; addresses in the order of the entities.

        `birth_of` finds the recorded start of a Turn whose first observation here is not its start.
        """
        addresses = []
        for entity in fact.entities:
            address = self.address_of(entity)
            if address is None:
                born = birth_of(fact, position) if birth_of is not None and entity.kind == "turn" else position
                address = self.bind(entity, observed_address(entity, born))
            addresses.append(address)
        return addresses

    def seed(self, state: ReplayState) -> None:
        """Bind everything that was settled before recording began, by its place in the initial state."""
        for index, session in enumerate(state.agent.sessions):
            base = f"/agent/sessions/{index}"
            is_root = session.kind == "root" or session.id == state.agent.root_session_id
            self.bind(
                Entity(kind="session", session_id=session.id),
                root_address() if is_root else initial_address("session", base),
            )
            for number, turn in enumerate(session.turns or []):
                entity = Entity(kind="turn", session_id=session.id, turn_id=turn.id)
                self.bind(entity, initial_address("turn", f"{base}/turns/{number}"))
            for number, message in enumerate(session.messages or []):
                self._seed_message(
                    session.id, message.id, message.turn_id, message.payload, f"{base}/messages/{number}"
                )
            for number, interaction in enumerate(session.interactions or []):
                entity = Entity(
                    kind="interaction",
                    session_id=session.id,
                    turn_id=interaction.turn_id,
                    entity_id=interaction.request_id,
                    interaction_kind=interaction.kind,
                )
                self.bind(entity, initial_address("interaction", f"{base}/interactions/{number}"))
            if session.goal is not None:
                entity = Entity(kind="goal", session_id=session.id)
                self.bind(entity, initial_address("goal", f"{base}/goal"))

    def _seed_message(self, session: str, message: str, turn: str, payload: object, path: str) -> None:
        self.bind(Entity(kind="message", session_id=session, message_id=message), initial_address("message", path))
        if not isinstance(payload, dict):
            return
        call = payload.get("callId")
        if isinstance(call, str) and call.strip():
            entity = Entity(kind="tool-call", session_id=session, turn_id=turn, entity_id=call)
            self.bind(entity, initial_address("tool-call", path))
        content = payload.get("content")
        ordinal = 0
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict) and block.get("attachmentId"):
                ordinal += 1
                entity = Entity(kind="attachment", session_id=session, message_id=message, ordinal=ordinal)
                self.bind(entity, initial_address("attachment", f"{path}/payload/content/{index}"))


def root_address() -> EntityAddress:
    """Address of the root session."""
    return EntityAddress(kind="session", origin=Origin(source="recording-root"))


def initial_address(kind: str, path: str) -> EntityAddress:
    """Address of an entity of the initial state."""
    return EntityAddress(kind=kind, origin=Origin(source="initial-state", initial_state_path=path))


def observed_address(entity: Entity, position: ObservationPosition) -> EntityAddress:
    """Address of an entity that a provider observation introduced."""
    discriminator = ""
    if entity.kind == "attachment":
        discriminator = str(entity.ordinal)
    elif entity.kind == "message":
        discriminator = "message"
    origin = Origin(source="provider-observation", provider_observation=position)
    return EntityAddress(kind=entity.kind, origin=origin, discriminator=discriminator)


def goal_address(session: EntityAddress, sequence: int) -> EntityAddress:
    """Address of a goal that an activity event introduced."""
    origin = Origin(source="activity-event", activity_event_sequence=sequence)
    return EntityAddress(kind="goal", origin=origin, discriminator=goal_discriminator(session))
