"""The canonical state as a portable document (replay-state §7, §9.3, §10.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cassettes.core.state import (
    AgentGraph,
    CapabilityRef,
    GoalState,
    InteractionState,
    MessageState,
    ReplayState,
    SessionState,
    TurnState,
    check_state,
    from_wire,
)
from cassettes.host import product, values
from cassettes.host.model import GoalRow, InteractionRow, MessageRow, SessionRow, TurnRow
from cassettes.host.projection import Projection, plan_decision
from cassettes.host.reduce_message import known_session
from cassettes.host.reduce_turn import without_watermark
from cassettes.host.store import Store

JsonObject = dict[str, Any]
ProviderHome = Callable[[SessionRow], str]


def capture(store: Store, session_id: str, replay_root: str, provider_home: ProviderHome | None) -> ReplayState:
    """The graph of a session (a child stands for its root) and its product state, checked.

    Raises `CassetteRejected`: `state_conflict` while something is live, `state_non_portable` with the path of
    a value that only this machine understands.
    """
    state = unchecked(store, session_id, replay_root, provider_home)
    check_state(state)
    return state


def unchecked(store: Store, session_id: str, replay_root: str, provider_home: ProviderHome | None) -> ReplayState:
    """As `capture`, without the checks of the document."""
    root = store.sessions[known_session(store, session_id).root_id]
    members = store.graphs[root.id]
    members = [root.id, *(name for name in members if name != root.id)]
    projection = Projection(root.cwd.strip() or replay_root)
    homes = {name: provider_home(store.sessions[name]) if provider_home else "" for name in members}
    document = {"schemaVersion": 1, "agent": {"rootSessionId": root.id, "sessions": []}}
    # The product bodies are documents already; owned copies keep the state apart from the store.
    state = from_wire({**document, **values.own(product.capture(store, members))})
    sessions = [_session(store, store.sessions[name], projection, homes[name]) for name in members]
    state.agent = AgentGraph(root_session_id=root.id, sessions=sessions)
    return state


def _session(store: Store, row: SessionRow, projection: Projection, home: str) -> SessionState:
    turns = store.turns[row.id]
    asked = sorted(store.interactions[row.id].values(), key=lambda one: turns[one.turn_id].seq)
    goal = store.goals.get(row.id)
    return SessionState(
        id=row.id,
        kind=row.kind,
        root_session_id=row.root_session_id,
        root_turn_id=row.root_turn_id,
        parent_session_id=row.parent_session_id,
        parent_turn_id=row.parent_turn_id,
        parent_tool_call_id=row.parent_tool_call_id,
        origin=row.origin,
        agent_target_id=row.agent_target_id,
        provider=row.provider,
        provider_session_id=row.provider_session_id,
        model=row.model,
        settings=values.own(row.settings),
        provider_resume_checkpoint=values.own(row.provider_resume_checkpoint or {}),
        cwd=projection.path(row.cwd),
        rail_section_kind=row.rail_section_kind,
        rail_project_path=projection.path(row.rail_project_path),
        rail_section_key=projection.rail_key(row.rail_section_kind, row.rail_section_key, row.rail_project_path),
        title=row.title,
        active_turn_id=row.active_turn_id,
        pinned=row.pinned,
        turns=[_turn(turn, projection) for turn in turns.values()],
        messages=[_message(message, projection, home) for message in store.messages[row.id].values()],
        interactions=[_interaction(one, projection) for one in asked],
        goal=_goal(goal) if goal is not None else None,
    )


def _turn(row: TurnRow, projection: Projection) -> TurnState:
    command = row.completed_command or {}
    if row.outcome.strip() == "canceled":  # what the provider still sent races with the cancel
        command = without_watermark(command)
    return TurnState(
        id=row.id,
        capability_refs=[
            CapabilityRef(capability=str(one.get("capability", "")), source=str(one.get("source", "")))
            for one in row.capability_refs
        ],
        phase=row.phase,
        outcome=row.outcome,
        error=values.own(row.error or {}),
        file_changes=projection.walk(row.file_changes or {}),
        completed_command=values.own(command),
        origin=row.origin,
        source_goal_operation_id=row.source_goal_operation_id,
        source_goal_revision=row.source_goal_revision,
        source_goal_repair_epoch=row.source_goal_repair_epoch,
        root_provider_turn_id=row.root_provider_turn_id,
    )


def _message(row: MessageRow, projection: Projection, home: str) -> MessageState:
    name, payload = plan_decision(row.id, row.payload)
    payload = projection.tool_payload(payload, home) if row.kind == "tool_call" else values.own(payload)
    return MessageState(
        id=name,
        turn_id=row.turn_id,
        role=row.role,
        kind=row.kind,
        status=row.status,
        semantics=values.own(row.semantics or {}),
        payload=payload,
    )


def _interaction(row: InteractionRow, projection: Projection) -> InteractionState:
    return InteractionState(
        request_id=row.request_id,
        turn_id=row.turn_id,
        kind=row.kind,
        status=row.status,
        tool_name=row.tool_name,
        input=projection.asked(row.input),
        output=values.own(row.output),
        metadata=values.own(row.metadata),
    )


def _goal(row: GoalRow) -> GoalState:
    return GoalState(
        desired=values.own(row.desired),
        observed=values.own(row.observed),
        revision=row.revision,
        tombstoned=row.tombstoned,
        sync_status=row.sync_status,
        pending_operation_id=row.pending_operation_id,
        last_evidence=values.own(row.last_evidence),
        last_error=row.last_error,
    )
