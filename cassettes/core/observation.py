"""Observations, their fingerprints, and the journal that ties them to commits (cassette-v7 §10, §11)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar

import msgspec

from cassettes.core import jsontext
from cassettes.core.address import EntityAddress, ObservationPosition, UnitPosition, check_address
from cassettes.core.checkpoints import (
    OBSERVATION_SCHEMA_VERSION,
    PLAN_FILE,
    UNIT_KINDS,
    Checkpoint,
    CheckpointPlan,
    is_fingerprint,
)
from cassettes.core.errors import CassetteRejected, Conflict, Place
from cassettes.core.records import Record, Value, compact_bytes, present, read_record, to_wire

JOURNAL_FILE = ".recording/observation-journal.jsonl"


def fingerprint(event_type: str, address: EntityAddress, stable: dict[str, Any]) -> str:
    """`sha256:` + digest of the compact JSON of an observation; an empty `stable` is left out."""
    document: dict[str, Any] = {
        "schemaVersion": OBSERVATION_SCHEMA_VERSION,
        "type": event_type,
        "address": _address_wire(address),
    }
    if stable:
        document["stable"] = jsontext.sorted_map(stable)
    data = msgspec.json.encode(document)
    if _ESCAPED.search(data):  # only the compact form of the contract escapes as it wants
        data = jsontext.compact(document).encode()
    return "sha256:" + hashlib.sha256(data).hexdigest()


_ESCAPED = re.compile(rb"[<>&\\\x7f-\xff]")


@lru_cache(4096)
def _address_wire(address: EntityAddress) -> dict[str, Any]:
    return to_wire(address)


class JournalObservation(Value, frozen=True):
    """One observation of a unit."""

    position: ObservationPosition = msgspec.field(default_factory=ObservationPosition)
    type: str = ""
    fingerprint: str = ""
    address: EntityAddress = msgspec.field(default_factory=EntityAddress)


class Correlation(Record):
    """What commit an observation must be followed by, and whether it was."""

    omit_empty: ClassVar[frozenset[str]] = frozenset({"transactionId"})
    id: str = ""
    kind: str = ""
    address: EntityAddress = msgspec.field(default_factory=EntityAddress)
    observation_position: ObservationPosition = msgspec.field(default_factory=ObservationPosition)
    observation_fingerprint: str = ""
    expected: str = ""
    confirmed: bool = False
    transaction_id: str = ""


class JournalEntry(Record):
    """One completed unit with what was seen in it."""

    schema_version: int = OBSERVATION_SCHEMA_VERSION
    position: UnitPosition = msgspec.field(default_factory=UnitPosition)
    unit_kind: str = ""
    observations: list[JournalObservation] = msgspec.field(default_factory=list)
    commit_correlations: list[Correlation] = msgspec.field(default_factory=list)


def encode_entry(entry: JournalEntry) -> bytes:
    """One line of the journal, newline included."""
    return compact_bytes(entry) + b"\n"


def decode_entry(line: bytes, number: int) -> JournalEntry:
    """One line of the journal."""
    value = jsontext.decode_strict(line.rstrip(b"\r\n"), file=JOURNAL_FILE, line=number)
    return read_record(JournalEntry, value, file=JOURNAL_FILE, line=number)


def merge_entry(known: JournalEntry, again: JournalEntry) -> JournalEntry:
    """An entry for a unit that is in the journal already (§11.2). `Conflict` when they contradict."""
    if (known.schema_version, known.unit_kind) != (again.schema_version, again.unit_kind):
        raise _conflict(again, "the unit has another kind")
    observations = {one.position: one for one in known.observations}
    for observation in again.observations:
        if observations.setdefault(observation.position, observation) != observation:
            raise _conflict(again, "the observation differs")
    correlations = {one.id: one for one in known.commit_correlations}
    for correlation in again.commit_correlations:
        before = correlations.get(correlation.id)
        correlations[correlation.id] = correlation if before is None else _merged(before, correlation, again)
    return JournalEntry(
        known.schema_version,
        known.position,
        known.unit_kind,
        list(observations.values()),
        list(correlations.values()),
    )


def _merged(known: Correlation, again: Correlation, entry: JournalEntry) -> Correlation:
    same = ("kind", "expected", "observation_position", "observation_fingerprint", "address")
    if any(getattr(known, name) != getattr(again, name) for name in same):
        raise _conflict(entry, "the correlation differs")
    if known.transaction_id and again.transaction_id and known.transaction_id != again.transaction_id:
        raise _conflict(entry, "the correlation was confirmed by another transaction")
    return msgspec.structs.replace(
        known,
        confirmed=known.confirmed or again.confirmed,
        transaction_id=known.transaction_id or again.transaction_id,
    )


def check_anchors(plan: CheckpointPlan, journal: Iterable[JournalEntry]) -> None:
    """Every provider checkpoint stands on a journaled observation with a confirmed commit (§11.3)."""
    observations: dict[ObservationPosition, JournalObservation] = {}
    correlations: dict[UnitPosition, list[Correlation]] = {}
    for number, entry in enumerate(journal, 1):
        _check_entry(entry, number, observations)
        correlations.setdefault(entry.position, []).extend(entry.commit_correlations)
    for checkpoint in plan.checkpoints:
        if checkpoint.trigger.source == "provider-observation" and checkpoint.trigger.position is not None:
            observation = observations.get(checkpoint.trigger.position)
            candidates = correlations.get(checkpoint.trigger.position.unit, [])
            _check_anchor(checkpoint, observation, candidates)


def _check_entry(entry: JournalEntry, number: int, seen: dict[ObservationPosition, JournalObservation]) -> None:
    def reject(detail: str) -> CassetteRejected:
        return CassetteRejected(
            f"journal entry {number}: {detail}", code="journal_invalid", place=Place(JOURNAL_FILE, number)
        )

    position = entry.position
    numbered = position.chunk_seq and position.unit_index and present(position.connection_id)
    if entry.schema_version != OBSERVATION_SCHEMA_VERSION or not numbered:
        raise reject("schema or position is invalid")
    if entry.unit_kind not in UNIT_KINDS:
        raise reject("the unit kind is unknown")
    for observation in entry.observations:
        inside = observation.position.unit == position and observation.position.event_index
        if not inside or not present(observation.type) or not is_fingerprint(observation.fingerprint):
            raise reject("an observation is malformed or outside its unit")
        check_address(observation.address, file=JOURNAL_FILE, line=number)
        if observation.position in seen:
            raise reject("an observation is journaled twice")
        seen[observation.position] = observation
    for correlation in entry.commit_correlations:
        check_address(correlation.address, file=JOURNAL_FILE, line=number)
        at = correlation.observation_position
        if at.unit != position or not at.event_index or not is_fingerprint(correlation.observation_fingerprint):
            raise reject("a correlation is malformed or outside its unit")


def _check_anchor(
    checkpoint: Checkpoint, observation: JournalObservation | None, correlations: list[Correlation]
) -> None:
    def reject(code: str, detail: str) -> CassetteRejected:
        place = Place(PLAN_FILE, 0, f"$.checkpoints[{checkpoint.index}].trigger")
        return CassetteRejected(f"{checkpoint.id}: {detail}", code=code, place=place)

    trigger = checkpoint.trigger
    if observation is None:
        raise reject("checkpoint_trigger_missing", "the journal has no observation at the trigger")
    if (observation.type, observation.fingerprint) != (trigger.type, trigger.fingerprint):
        raise reject("checkpoint_trigger_mismatch", "the journaled observation is another one")
    if observation.address not in checkpoint.subjects:
        raise reject("checkpoint_trigger_mismatch", "the observed entity is not among the subjects")
    for one in correlations:
        same = (one.address, one.observation_position, one.observation_fingerprint) == (
            observation.address,
            observation.position,
            observation.fingerprint,
        )
        if same and one.confirmed and all((one.id, one.kind, one.expected, one.transaction_id)):
            return
    raise reject("checkpoint_commit_unconfirmed", "no confirmed commit followed the observation")


def _conflict(entry: JournalEntry, detail: str) -> Conflict:
    at = entry.position
    return Conflict(
        f"journal: {detail}",
        code="journal_conflict",
        place=Place(JOURNAL_FILE, 0, f"{at.connection_id} {at.chunk_seq}/{at.unit_index}"),
    )
