"""References of a checkpoint plan into the rest of the Cassette: nothing may dangle (spec: cassette-v7 §8, H9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cassettes.artifacts.audit_tape import TapeReport
from cassettes.artifacts.cassette import FILES
from cassettes.core.activity import ActivityEvent
from cassettes.core.address import EntityAddress
from cassettes.core.checkpoints import CheckpointPlan
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.state import ReplayState

_POINTERS = {
    "session": r"/agent/sessions/(?P<session>\d+)",
    "turn": r"/agent/sessions/(?P<session>\d+)/turns/(?P<item>\d+)",
    "message": r"/agent/sessions/(?P<session>\d+)/messages/(?P<item>\d+)",
    "tool-call": r"/agent/sessions/(?P<session>\d+)/messages/(?P<item>\d+)",
    "attachment": r"/agent/sessions/(?P<session>\d+)/messages/(?P<item>\d+)/payload/content/(?P<block>\d+)",
    "interaction": r"/agent/sessions/(?P<session>\d+)/interactions/(?P<item>\d+)",
    "goal": r"/agent/sessions/(?P<session>\d+)/goal",
}


def check_addresses(
    plan: CheckpointPlan, events: Sequence[ActivityEvent], tape: TapeReport, initial: ReplayState | None
) -> None:
    """Refuse an address or trigger that names something the Cassette does not have.

    Positions past the end of the tape are not refused: the tape of an edited Cassette may be empty.
    """
    connections = {connection.connection_id for connection in tape.manifest.connections}
    for index, checkpoint in enumerate(plan.checkpoints):
        base = f"$.checkpoints[{index}]"
        position = checkpoint.trigger.position
        if position is not None and position.connection_id not in connections:
            raise _dangling("A trigger names a connection that is not on the tape.", f"{base}.trigger.position")
        for number, address in enumerate(checkpoint.subjects):
            _check(address, f"{base}.subjects[{number}].origin", len(events), connections, initial)


def _dangling(message: str, path: str, found: object = None) -> CassetteRejected:
    return CassetteRejected(
        message, code="address_dangling", place=Place(file=FILES.checkpoint_plan.path, path=path), found=found
    )


def _check(
    address: EntityAddress, path: str, event_count: int, connections: set[str], initial: ReplayState | None
) -> None:
    origin = address.origin
    if origin.source == "activity-event" and origin.activity_event_sequence > event_count:
        raise _dangling(
            "An address names an event after the last one.",
            f"{path}.activityEventSequence",
            origin.activity_event_sequence,
        )
    observed = origin.provider_observation
    if observed is not None and observed.connection_id not in connections:
        raise _dangling(
            "An address names a connection that is not on the tape.", f"{path}.providerObservation.connectionId"
        )
    if origin.source == "initial-state":
        where = f"{path}.initialStatePath"
        if initial is None:
            raise _dangling("An address points into an initial state, but there is none.", where)
        if not _resolves(address.kind, origin.initial_state_path, initial):
            raise _dangling(
                "An address points to nothing of its kind in the initial state.", where, origin.initial_state_path
            )


def _resolves(kind: str, pointer: str, initial: ReplayState) -> bool:
    match = re.fullmatch(_POINTERS[kind], pointer, re.ASCII)
    if match is None:
        return False
    places = {name: int(text) for name, text in match.groupdict().items()}
    sessions = initial.agent.sessions
    if places["session"] >= len(sessions):
        return False
    session = sessions[places["session"]]
    if kind == "session":
        return True
    if kind == "goal":
        return session.goal is not None
    by_kind: dict[str, Sequence[Any]] = {"turn": session.turns, "interaction": session.interactions}
    items = by_kind.get(kind, session.messages)
    if places["item"] >= len(items):
        return False
    if kind == "tool-call":
        return bool(items[places["item"]].call_id)
    if kind == "attachment":
        return places["block"] in {index for index, _ in items[places["item"]].attachments()}
    return True
