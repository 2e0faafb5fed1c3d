"""Entity addresses: what kind of thing, introduced by which immutable fact of this Cassette (cassette-v7 §8)."""

from __future__ import annotations

import base64
from typing import ClassVar

import msgspec

from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.records import Value, compact_bytes, present

KINDS = frozenset({"session", "turn", "message", "tool-call", "interaction", "goal", "attachment"})


class UnitPosition(Value, frozen=True):
    """A Provider Input Unit."""

    connection_id: str = ""
    chunk_seq: int = 0
    unit_index: int = 0


class ObservationPosition(Value, frozen=True):
    """One event inside a unit."""

    connection_id: str = ""
    chunk_seq: int = 0
    unit_index: int = 0
    event_index: int = 0

    @property
    def unit(self) -> UnitPosition:
        return UnitPosition(self.connection_id, self.chunk_seq, self.unit_index)


class Origin(Value, frozen=True):
    """The place in the Cassette where an entity first appears; exactly one position member beside `source`."""

    omit_empty: ClassVar[frozenset[str]] = frozenset(
        {"initialStatePath", "activityEventSequence", "providerObservation"}
    )
    source: str = ""
    initial_state_path: str = ""
    activity_event_sequence: int = 0
    provider_observation: ObservationPosition | None = None


class EntityAddress(Value, frozen=True):
    """A portable identity. Equality is by value."""

    omit_empty: ClassVar[frozenset[str]] = frozenset({"discriminator"})
    kind: str = ""
    origin: Origin = msgspec.field(default_factory=Origin)
    discriminator: str = ""


def address_key(address: EntityAddress) -> str:
    """Compact JSON of the address."""
    return compact_bytes(address).decode()


def goal_discriminator(parent: EntityAddress) -> str:
    """Discriminator of a goal below the session `parent`."""
    return "parent:" + base64.urlsafe_b64encode(address_key(parent).encode()).decode().rstrip("=")


def check_address(address: EntityAddress, *, file: str = "", line: int = 0, path: str = "$") -> None:
    """Refuse an address that breaks the rules of §8, in the order of the table."""

    def reject(detail: str, member: str) -> CassetteRejected:
        return CassetteRejected(
            f"entity address: {detail}", code="address_invalid", place=Place(file, line, f"{path}{member}")
        )

    origin = address.origin
    if address.kind not in KINDS:
        raise reject(f"kind {address.kind!r} is unknown", ".kind")
    if address.discriminator != address.discriminator.strip():
        raise reject("the discriminator is not trimmed", ".discriminator")
    positions = {
        "initial-state": origin.initial_state_path != "",
        "activity-event": origin.activity_event_sequence != 0,
        "provider-observation": origin.provider_observation is not None,
    }
    if origin.source == "recording-root":
        if address.kind != "session" or address.discriminator:
            raise reject("recording-root is the root session and nothing else", ".origin.source")
    elif origin.source == "initial-state":
        if not origin.initial_state_path.startswith("/"):
            raise reject("the initial state path does not start with /", ".origin.initialStatePath")
    elif origin.source == "activity-event":
        if origin.activity_event_sequence < 1:
            raise reject("the activity event sequence is missing", ".origin.activityEventSequence")
    elif origin.source == "provider-observation":
        check_position(origin.provider_observation, file=file, line=line, path=f"{path}.origin.providerObservation")
    else:
        raise reject(f"source {origin.source!r} is unknown", ".origin.source")
    if any(given for source, given in positions.items() if source != origin.source):
        raise reject("it has the position of another source as well", ".origin")


def check_position(
    position: ObservationPosition | None, *, file: str = "", line: int = 0, path: str = "$"
) -> ObservationPosition:
    """A position with a connection and three numbers ≥ 1."""
    if position is not None and present(position.connection_id):
        numbers = (position.chunk_seq, position.unit_index, position.event_index)
        if all(number >= 1 for number in numbers):
            return position
    raise CassetteRejected(
        "the observation position is not complete", code="address_invalid", place=Place(file, line, path)
    )
