"""Tutti Mode, Workflows and Issues: kept whole, captured as they are (replay-state §4-§6)."""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import Conflict, Place
from cassettes.core.state import Entity, Issue, ReplayState, Workflow, to_wire
from cassettes.host import values
from cassettes.host.reduce_message import known_session
from cassettes.host.store import ProductRow, Store
from cassettes.host.transaction import Transaction

JsonObject = dict[str, Any]
_PLACES = {
    "activation": "$.tuttiMode.activations",
    "snapshot": "$.tuttiMode.turnSnapshots",
    "workflow": "$.workflows",
    "issue": "$.issues",
}
_SOURCES = {"active": ("slash_command", "agent_command"), "inactive": ("badge_remove", "agent_command")}


def snapshot_turn(txn: Transaction, session_id: str, turn_id: str) -> None:
    """Keep what Tutti Mode is for a Turn that is about to be dispatched."""
    mode = activation(txn.store, session_id)
    body: JsonObject = {"sessionId": session_id, "turnId": turn_id, "revision": 0, "state": "inactive"}
    body |= {"preferenceVersion": 0, "effect": 0, "speed": 0, "dispatchState": "prepared"}
    if mode is not None:
        body |= {"activationId": mode["id"], "revisionId": mode["currentRevisionId"]}
        body |= {"revision": mode["currentRevision"], "state": mode["state"], "source": mode["source"]}
        body |= {"preferenceVersion": 1, "effect": mode["effect"], "speed": mode["speed"]}
    _put(txn, "snapshot", _snapshot_id(session_id, turn_id), session_id, body)


def accept_turn(txn: Transaction, session_id: str, turn_id: str) -> None:
    """The provider took the Turn's prompt."""
    row = txn.store.products.get(("snapshot", _snapshot_id(session_id, turn_id)))
    if row is not None and row.body["dispatchState"] == "prepared":
        _put(txn, "snapshot", row.id, session_id, {**row.body, "dispatchState": "accepted"})


def set_mode(
    txn: Transaction,
    session_id: str,
    *,
    activation_id: str,
    revision_id: str,
    state: str,
    source: str,
    effect: int = 50,
    speed: int = 50,
) -> None:
    """Switch Tutti Mode of a session: the next revision of its one activation."""
    known_session(txn.store, session_id)
    if source not in _SOURCES.get(state, ()) or not (0 <= effect <= 100 and 0 <= speed <= 100):
        raise Conflict(
            "This source cannot bring Tutti Mode into this state, or a preference is out of range.",
            code="host_mode_invalid",
            place=Place(path="$.source"),
            found=f"{state} by {source}, effect {effect}, speed {speed}",
            hint="A slash command activates, removing the badge deactivates; effect and speed are 0 to 100.",
        )
    known = activation(txn.store, session_id)
    body: JsonObject = {
        "id": known["id"] if known else activation_id,
        "sessionId": session_id,
        "currentRevisionId": revision_id,
        "currentRevision": known["currentRevision"] + 1 if known else 1,
        "state": state,
        "source": source,
        "effect": effect,
        "speed": speed,
    }
    _put(txn, "activation", str(body["id"]), session_id, body)


def put_workflow(txn: Transaction, workflow: Workflow) -> None:
    """Create or replace a Workflow."""
    _put(txn, "workflow", workflow.id, workflow.source_session_id, to_wire(workflow))


def put_issue(txn: Transaction, issue: Issue) -> None:
    """Create or replace an Issue with its tasks."""
    _put(txn, "issue", issue.id, "", to_wire(issue))


def activation(store: Store, session_id: str) -> JsonObject | None:
    """The activation of a session."""
    for row in store.products.values():
        if row.domain == "activation" and row.session_id == session_id:
            return row.body
    return None


def restore(txn: Transaction, state: ReplayState) -> None:
    """Take in the product domains; any key that exists already aborts (§13.4)."""
    entities: list[tuple[str, str, str, Entity]] = []
    for one in state.tutti_mode.activations:
        entities.append(("activation", one.id, one.session_id, one))
    for shot in state.tutti_mode.turn_snapshots:
        entities.append(("snapshot", _snapshot_id(shot.session_id, shot.turn_id), shot.session_id, shot))
    for flow in state.workflows:
        entities.append(("workflow", flow.id, flow.source_session_id, flow))
    for issue in state.issues:
        entities.append(("issue", issue.id, "", issue))
    for domain, name, session_id, entity in entities:
        if (domain, name) in txn.store.products:
            raise Conflict(
                f"The {domain} {name!r} exists already.",
                code="host_restore_conflict",
                place=Place(path=_PLACES[domain]),
                hint="Restore into an empty store.",
            )
        _put(txn, domain, name, session_id, to_wire(entity))


def capture(store: Store, sessions: list[str]) -> JsonObject:
    """The product members of the document of a graph, in order of creation."""
    rows = store.products.values()
    place = {name: index for index, name in enumerate(sessions)}

    def bodies(domain: str) -> list[JsonObject]:
        return [row.body for row in rows if row.domain == domain and row.session_id in place]

    def order(shot: JsonObject) -> tuple[int, int]:
        turn = store.turns[shot["sessionId"]].get(shot["turnId"])
        return place[shot["sessionId"]], turn.seq if turn is not None else 1 << 60

    workflows = bodies("workflow")
    wanted = {name for flow in workflows for name in flow["issueIds"]}
    return {
        "tuttiMode": {"activations": bodies("activation"), "turnSnapshots": sorted(bodies("snapshot"), key=order)},
        "workflows": workflows,
        "issues": [row.body for row in rows if row.domain == "issue" and row.id in wanted],
    }


def _snapshot_id(session_id: str, turn_id: str) -> str:
    return f"{session_id}\0{turn_id}"


def _put(txn: Transaction, domain: str, name: str, session_id: str, body: JsonObject) -> None:
    key = ("product", domain, name)
    row = txn.store.products.get((domain, name))
    if row is None:
        txn.insert(key, ProductRow(domain=domain, id=name, session_id=session_id, body=values.own(body)))
    elif not values.same(row.body, body):
        txn.keep(key, row)
        row.session_id = session_id
        row.body = values.own(body)
