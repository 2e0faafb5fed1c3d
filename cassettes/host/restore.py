"""A document as canonical state: the history a replay continues from (replay-state §9.4, §13.3, §13.4)."""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import CassetteRejected, Conflict, Place
from cassettes.core.state import ReplayState, SessionState, check_state, encode_state
from cassettes.host import product, values
from cassettes.host.capture import unchecked
from cassettes.host.model import GoalRow, InteractionRow, MessageRow, SessionRow, TurnRow
from cassettes.host.projection import Resolution
from cassettes.host.store import Store
from cassettes.host.transaction import Transaction

JsonObject = dict[str, Any]

_PHASES = frozenset({"submitted", "running", "waiting", "settling", "settled"})
_INTERACTION_KINDS = frozenset({"approval", "question", "plan"})
_INTERACTION_STATES = frozenset({"pending", "answered", "superseded"})


def restore(txn: Transaction, state: ReplayState, replay_root: str, user_id: str) -> None:
    """Insert a checked document. The same one again, of the same user, changes nothing; another one conflicts."""
    check_state(state)
    store = txn.store
    root_id = state.agent.root_session_id
    known = [one.id for one in state.agent.sessions if one.id in store.sessions]
    if known:
        _must_be_the_same(store, state, known, replay_root, user_id)
        return
    _check_tree(state)
    resolution = Resolution(replay_root)
    for index, session in enumerate(_ordered(state)):
        _session(txn, session, resolution, f"$.agent.sessions[{index}]")
    product.restore(txn, state)
    store.set_meta(f"owner:{root_id}", user_id)


def _must_be_the_same(store: Store, state: ReplayState, known: list[str], replay_root: str, user_id: str) -> None:
    root_id = state.agent.root_session_id
    same = (
        len(known) == len(state.agent.sessions)
        and store.meta(f"owner:{root_id}") == user_id
        and root_id in store.graphs
        and _graph_bytes(unchecked(store, root_id, replay_root, None)) == _graph_bytes(state)
    )
    if not same:
        raise Conflict(
            "The sessions of the document exist already, with other content or another owner.",
            code="host_restore_conflict",
            place=Place(path="$.agent.sessions"),
            found=", ".join(known),
            hint="Restore into an empty store.",
        )


def _graph_bytes(state: ReplayState) -> bytes:
    return encode_state(ReplayState(agent=state.agent))


def _ordered(state: ReplayState) -> list[SessionState]:
    """The root, then the others in document order, which becomes the order of creation."""
    root = state.agent.root
    return [root, *(one for one in state.agent.sessions if one is not root)]


def _check_tree(state: ReplayState) -> None:
    parents = {one.id: one.parent_session_id for one in state.agent.sessions}
    root_id = state.agent.root_session_id
    for one in state.agent.sessions:
        name, steps = one.id, 0
        while name != root_id:
            name, steps = parents[name], steps + 1
            if steps > len(parents):
                raise _refused("host_restore_conflict", "A child is its own ancestor.", "$.agent.sessions", one.id)


def _session(txn: Transaction, session: SessionState, resolution: Resolution, where: str) -> None:
    child = session.kind == "child"
    txn.insert(
        ("session", session.id),
        SessionRow(
            id=session.id,
            kind="child" if child else "root",
            root_session_id=session.root_session_id,
            root_turn_id=session.root_turn_id,
            parent_session_id=session.parent_session_id,
            parent_turn_id=session.parent_turn_id,
            parent_tool_call_id=session.parent_tool_call_id,
            origin=session.origin,
            agent_target_id=session.agent_target_id,
            provider=session.provider,
            provider_session_id=session.provider_session_id,
            model=session.model,
            settings=values.own(session.settings),
            provider_resume_checkpoint=values.own(session.provider_resume_checkpoint) or None,
            cwd=resolution.path(session.cwd, f"{where}.cwd"),
            rail_section_kind=session.rail_section_kind or "conversations",
            rail_project_path=resolution.path(session.rail_project_path, f"{where}.railProjectPath"),
            rail_section_key=resolution.rail_key(session.rail_section_key, f"{where}.railSectionKey")
            or "conversations",
            title=session.title,
            pinned=session.pinned,
            message_version=len(session.messages),
            created_at_ms=txn.at,
            updated_at_ms=txn.at,
        ),
    )
    _turns(txn, session, resolution, where)
    _messages(txn, session, resolution, where)
    _interactions(txn, session, resolution, where)
    goal = session.goal
    if goal is not None:
        row = GoalRow(
            session_id=session.id,
            desired=values.own(goal.desired),
            observed=values.own(goal.observed),
            revision=goal.revision,
            tombstoned=goal.tombstoned,
            sync_status=goal.sync_status,
            last_evidence=values.own(goal.last_evidence),
            last_error=goal.last_error,
        )
        txn.insert(("goal", session.id), row)


def _turns(txn: Transaction, session: SessionState, resolution: Resolution, where: str) -> None:
    for index, turn in enumerate(session.turns):
        if turn.phase not in _PHASES:
            raise _refused("state_invalid", "A Turn has no known phase.", f"{where}.turns[{index}].phase", turn.phase)
        settled = turn.phase == "settled"
        bound = bool(turn.root_provider_turn_id)
        row = TurnRow(
            session_id=session.id,
            id=turn.id,
            seq=index + 1,
            phase=turn.phase,  # type: ignore[arg-type]
            outcome=turn.outcome,
            origin=turn.origin,
            capability_refs=[{"capability": one.capability, "source": one.source} for one in turn.capability_refs],
            error=values.own(turn.error) or None,
            file_changes=resolution.walk(turn.file_changes, f"{where}.turns[{index}].fileChanges") or None,
            completed_command=values.own(turn.completed_command) or None,
            source_goal_operation_id=turn.source_goal_operation_id,
            source_goal_revision=turn.source_goal_revision,
            source_goal_repair_epoch=turn.source_goal_repair_epoch,
            root_provider_turn_id=turn.root_provider_turn_id,
            provider_phase=("completed" if settled else "running") if bound else "",
            provider_outcome=turn.outcome if bound else "",
            started_at_ms=txn.at,
            settled_at_ms=txn.at if settled else 0,
            updated_at_ms=txn.at,
        )
        txn.insert(("turn", session.id, turn.id), row)


def _messages(txn: Transaction, session: SessionState, resolution: Resolution, where: str) -> None:
    for index, message in enumerate(session.messages):
        place = f"{where}.messages[{index}]"
        if message.id in txn.store.messages[session.id]:
            raise _refused("state_conflict", "Two Messages have the same id.", f"{place}.id", message.id)
        if message.kind == "tool_call":
            payload = resolution.walk(message.payload, f"{place}.payload")
        else:
            payload = values.own(message.payload)
        values.share_text(payload)
        row = MessageRow(
            session_id=session.id,
            id=message.id,
            turn_id=message.turn_id,
            role=message.role,
            kind=message.kind,
            status=message.status,
            semantics=values.own(message.semantics) or None,
            payload=payload,
            version=index + 1,
            created_seq=index + 1,
            created_at_ms=txn.at,
            updated_at_ms=txn.at,
        )
        txn.insert(("message", session.id, message.id), row)


def _interactions(txn: Transaction, session: SessionState, resolution: Resolution, where: str) -> None:
    for index, one in enumerate(session.interactions):
        place = f"{where}.interactions[{index}]"
        if one.turn_id not in txn.store.turns[session.id]:
            raise _refused("state_conflict", "An Interaction names an unknown Turn.", f"{place}.turnId", one.turn_id)
        if (one.turn_id, one.request_id) in txn.store.interactions[session.id]:
            raise _refused("state_conflict", "A request is there twice.", f"{place}.requestId", one.request_id)
        if one.kind not in _INTERACTION_KINDS:
            raise _refused("state_invalid", "An Interaction has no known kind.", f"{place}.kind", one.kind)
        if one.status not in _INTERACTION_STATES:
            raise _refused("state_invalid", "An Interaction has no known status.", f"{place}.status", one.status)
        row = InteractionRow(
            session_id=session.id,
            turn_id=one.turn_id,
            request_id=one.request_id,
            kind=one.kind,  # type: ignore[arg-type]
            status=one.status,  # type: ignore[arg-type]
            tool_name=one.tool_name,
            input=resolution.walk(one.input, f"{place}.input"),
            output=values.own(one.output),
            metadata=values.own(one.metadata),
            created_at_ms=txn.at,
            updated_at_ms=txn.at,
        )
        txn.insert(("interaction", session.id, one.turn_id, one.request_id), row)


def _refused(code: str, message: str, path: str, found: str) -> CassetteRejected | Conflict:
    error = Conflict if code == "host_restore_conflict" else CassetteRejected
    return error(
        message,
        code=code,
        place=Place(path=path),
        found=found,
        hint="The state file was tampered with; record the scenario again.",
    )
