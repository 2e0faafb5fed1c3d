"""Every member of a valid Cassette deleted, given another type, or moved by one: refused, or rightly allowed.

What the contract allows stands in the tables below, with its reason. Everything else must be refused with a code.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cassettes.artifacts.audit import verify_static
from cassettes.core.errors import CassetteRejected
from cassettes.core.jsontext import compact, indented
from tests.making import reseal
from tests.samples import CASSETTES

GONE = {"deleted", "null"}  # a missing member and null are the zero value (§3.2)
MOVED = {"plus one", "minus one"}
ANY_TYPE = {"null", "number", "text", "list", "object", "true"}
ANY = GONE | MOVED | ANY_TYPE

FREE_PAYLOAD = "the payload of an event is a free map; what a replay makes of it is not the contract's"
TIME = "any time after the one before"
ZERO = "the zero value is a legal value"
EMPTY_LIST = "a missing list is empty (§9.1, §12)"
FEWER = "one fewer is still a list of its kind"
EVIDENCE = "statistics and limits are evidence: a difference is noted, no reason to reject (provider-tape §2)"
POSITION = "another position of the tape; whether something was observed there shows in the replay"

ALLOWED: dict[str, dict[str, tuple[set[str], str]]] = {
    "cassette.json": {
        "createdAtUnixMs": (MOVED, TIME),
        "files.*.role": (GONE, "an empty role means the role of the path (§4)"),
    },
    "activity-events.jsonl": {
        "*.agentSessionId": (GONE, "omit-empty, not required (§7.1)"),
        "*.correlationId": (GONE, "free; one side alone is fine (§7.3 rule 11)"),
        "*.occurredAtUnixMs": (MOVED, TIME),
        "*.payload": (GONE, "omit-empty"),
        "*.payload.agentTargetId": (ANY, FREE_PAYLOAD),
        "*.payload.clientSubmitId": (ANY, FREE_PAYLOAD),
        "*.payload.content": (ANY, FREE_PAYLOAD),
        "*.payload.content.*": (ANY, FREE_PAYLOAD),
        "*.payload.content.*.text": (ANY, FREE_PAYLOAD),
        "*.payload.content.*.type": (ANY, FREE_PAYLOAD),
        "*.payload.cwd": (ANY, "non-strings and blanks pass (§7.6)"),
        "*.payload.mode": (ANY, FREE_PAYLOAD),
    },
    "checkpoint-plan.json": {
        "checkpoints.*": ({"deleted"}, "the last one may go"),
        "checkpoints.*.cursor": (GONE, "the zero cursor of the bootstrap"),
        "checkpoints.*.cursor.activityEventSequence": (GONE | MOVED, "any cursor that never goes back"),
        "checkpoints.*.cursor.providerConnections": (GONE, EMPTY_LIST),
        "checkpoints.*.cursor.providerConnections.*": ({"deleted"}, "a connection may appear later"),
        "checkpoints.*.cursor.providerConnections.*.chunkSeq": (GONE | {"plus one"}, "a later cursor"),
        "checkpoints.*.cursor.providerConnections.*.unitIndex": (GONE | {"plus one"}, "a later cursor"),
        "checkpoints.*.index": (GONE, ZERO),
        "checkpoints.*.readiness": (GONE, EMPTY_LIST),
        "checkpoints.*.readiness.all": (GONE, EMPTY_LIST),
        "checkpoints.*.readiness.all.*": ({"deleted"}, FEWER),
        "checkpoints.*.readiness.all.*.subject": (GONE, ZERO),
        "checkpoints.*.subjects": (GONE, EMPTY_LIST),
        "checkpoints.*.subjects.*.origin.providerObservation.chunkSeq": (MOVED, POSITION),
        "checkpoints.*.subjects.*.origin.providerObservation.unitIndex": (MOVED, POSITION),
        "checkpoints.*.subjects.*.origin.providerObservation.eventIndex": ({"plus one"}, POSITION),
        "checkpoints.*.trigger.position.chunkSeq": ({"minus one"}, POSITION),
        "checkpoints.*.trigger.position.unitIndex": ({"minus one"}, POSITION),
        "checkpoints.*.trigger.position.eventIndex": ({"plus one"}, POSITION),
    },
    "expected-state.json": {
        "agent.sessions.*.cwd": (GONE, "not every session has a folder"),
        "agent.sessions.*.interactions": (GONE, EMPTY_LIST),
        "agent.sessions.*.messages": (GONE, EMPTY_LIST),
        "agent.sessions.*.messages.*": ({"deleted"}, FEWER),
        "agent.sessions.*.messages.*.kind": (GONE, ZERO),
        "agent.sessions.*.messages.*.payload": (GONE, ZERO),
        "agent.sessions.*.messages.*.payload.text": (ANY, "the payload of a message is a free map"),
        "agent.sessions.*.messages.*.role": (GONE, ZERO),
        "agent.sessions.*.messages.*.status": (GONE, ZERO),
        "agent.sessions.*.messages.*.turnId": (GONE, "a message may belong to no Turn"),
        "agent.sessions.*.pinned": (GONE, ZERO),
        "agent.sessions.*.settings": (GONE, ZERO),
        "agent.sessions.*.turns.*.capabilityRefs": (GONE, EMPTY_LIST),
        "agent.sessions.*.turns.*.origin": (GONE, ZERO),
        "agent.sessions.*.turns.*.outcome": (GONE, ZERO),
        "agent.sessions.*.turns.*.phase": (GONE, ZERO),
        "agent.sessions.*.turns.*.rootProviderTurnId": (GONE, ZERO),
    },
    "blobs/manifest.json": {"blobs": (GONE, EMPTY_LIST)},
    "provider/frames.jsonl": {
        "*.data": (GONE, "a frame may be empty: it is consumed, never delivered (provider-tape §3)"),
        "*.elapsedMs": (GONE | MOVED, TIME),
    },
    "provider/manifest.json": {
        "connections.*.agentSessionId": (GONE, "only the key must be unique (provider-tape §4)"),
        "connections.*.rootAgentSessionId": (GONE, "not checked when a tape is loaded"),
        "connections.*.cwdToken": (GONE, "not checked when a tape is loaded"),
        "connections.*.launchOrdinal": ({"plus one"}, "at least 1"),
        "framesByKind": (GONE, EVIDENCE),
        "framesByKind.*": (GONE, EVIDENCE),
        "framesByKind.*.*": (GONE | MOVED, EVIDENCE),
        "limits": (GONE, EVIDENCE),
        "limits.*": (GONE | MOVED, EVIDENCE),
        "maxFrameBytes": (GONE | MOVED, EVIDENCE),
        "payloadBytes": (GONE | MOVED, EVIDENCE),
        "storedBytes": (GONE | MOVED, EVIDENCE),
    },
}

Path_ = tuple[str | int, ...]


def places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every place below a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in inner:
        yield (*path, step)
        yield from places(member, (*path, step))


def mutants(value: Any) -> Iterator[tuple[Path_, str, Any]]:
    """(place, what was done, the changed value)."""

    def changed(path: Path_, change: Callable[[Any, Any], object]) -> Any:
        result = copy.deepcopy(value)
        parent = result
        for step in path[:-1]:
            parent = parent[step]
        change(parent, path[-1])
        return result

    for path in places(value):
        old: Any = value
        for step in path:
            old = old[step]
        yield path, "deleted", changed(path, lambda parent, step: parent.__delitem__(step))
        for name, new in (("null", None), ("number", 7), ("text", "x"), ("list", []), ("object", {}), ("true", True)):
            if type(new) is not type(old):
                yield path, name, changed(path, lambda parent, step, new=new: parent.__setitem__(step, new))  # type: ignore[misc]
        if type(old) is int:
            for name, by in (("plus one", 1), ("minus one", -1)):
                yield path, name, changed(path, lambda parent, step, new=old + by: parent.__setitem__(step, new))  # type: ignore[misc]


def pattern_of(name: str, path: Path_) -> str:
    """The row of the table for a place: list indices, and the kinds and limits of the tape, are stars."""
    steps = ["*" if isinstance(step, int) else step for step in path]
    if name == "provider/manifest.json" and steps[0] in ("framesByKind", "limits"):
        steps[1:] = ["*"] * len(steps[1:])
    return ".".join(steps)


def accepted(cassette: Path, name: str) -> Iterator[tuple[str, str]]:
    """(pattern, what was done) of every mutant of one file that is accepted."""
    path = cassette / name
    as_lines = name.endswith(".jsonl")
    original = path.read_bytes()
    sealed = {one: (cassette / one).read_bytes() for one in ("cassette.json", "provider/manifest.json")}
    value = [json.loads(line) for line in original.splitlines()] if as_lines else json.loads(original)
    for place, kind, mutant in mutants(value):
        path.write_text("".join(compact(line) + "\n" for line in mutant) if as_lines else indented(mutant))
        if name != "cassette.json":
            reseal(cassette, tape=name == "provider/frames.jsonl")
        try:
            verify_static(cassette)
            yield pattern_of(name, place), kind
        except CassetteRejected as rejected:
            assert rejected.code and str(rejected.place), f"{name} {place} {kind}"
        path.write_bytes(original)
        for one, data in sealed.items():
            (cassette / one).write_bytes(data)


@pytest.mark.parametrize("name", list(ALLOWED))
def test_a_change_is_refused_unless_the_table_allows_it(name: str, tmp_path: Path) -> None:
    cassette = Path(shutil.copytree(CASSETTES / "example", tmp_path / "example"))
    found: dict[str, set[str]] = defaultdict(set)
    for pattern, kind in accepted(cassette, name):
        found[pattern].add(kind)
    surplus = {one: kinds - ALLOWED[name].get(one, (set(), ""))[0] for one, kinds in found.items()}
    assert {one: kinds for one, kinds in surplus.items() if kinds} == {}
    assert set(ALLOWED[name]) == set(found), "the table names only what is really allowed"
