"""Sessions, their Interactions and the observed goal (replay-state §18, provider-adapters §3.1)."""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import Conflict, Place
from cassettes.host import values
from cassettes.host.events import InteractionEvent, Lineage, SessionEvent
from cassettes.host.model import GoalRow, InteractionRow, SessionRow
from cassettes.host.reduce_message import known_session, unknown_turn
from cassettes.host.reduce_turn import advance, bind_checkpoint, open_turn, settle
from cassettes.host.transaction import Transaction

JsonObject = dict[str, Any]


def apply_session(txn: Transaction, event: SessionEvent) -> None:
    """`session.started`, `.updated`, `.completed`, `.failed`, of the root or of a child."""
    session = txn.store.sessions.get(event.session_id)
    if session is None:
        if event.lineage is None:
            session = known_session(txn.store, event.session_id)  # tells what is wrong
        else:
            session = _open_child(txn, event, event.lineage)
    elif event.lineage is not None:
        _check_lineage(session, event.lineage)
    _update(txn, session, event)
    if event.type in ("session.completed", "session.failed"):
        _end(txn, session, event)


def apply_interaction(txn: Transaction, event: InteractionEvent) -> None:
    """`interaction.requested`, `interaction.superseded`."""
    store = txn.store
    session = known_session(store, event.session_id)
    turn = store.turns[session.id].get(event.turn_id)
    row = store.interactions[session.id].get((event.turn_id, event.request_id))
    if event.type == "interaction.superseded":
        if row is not None and row.status == "pending":
            edit_interaction(txn, row).status = "superseded"
        return
    if turn is None:
        raise unknown_turn(session.id, event.turn_id)
    if row is not None:
        if (row.kind, row.tool_name) != (event.kind, event.tool_name) or not values.same(row.input, event.input):
            raise Conflict(
                f"The request {event.request_id!r} was made twice with different content.",
                code="host_interaction_exists",
                place=Place(path="$.requestId"),
                hint="Every request of a Turn needs an id of its own.",
            )
        return
    if turn.phase == "settled":
        return
    if event.kind not in ("approval", "question", "plan"):
        raise Conflict(
            "An Interaction is an approval, a question or a plan.",
            code="host_interaction_kind",
            place=Place(path="$.kind"),
            found=event.kind,
            hint="The adapter has to choose one of the three.",
        )
    row = InteractionRow(
        session_id=session.id,
        turn_id=event.turn_id,
        request_id=event.request_id,
        kind=event.kind,  # type: ignore[arg-type]
        status="pending",
        tool_name=event.tool_name,
        input=values.own(event.input),
        metadata=values.own(event.metadata),
        created_at_ms=txn.at,
        updated_at_ms=txn.at,
    )
    txn.insert(("interaction", session.id, event.turn_id, event.request_id), row)
    txn.touch(session)
    advance(txn, turn, "waiting")


def edit_interaction(txn: Transaction, row: InteractionRow) -> InteractionRow:
    """Announce a change of an Interaction."""
    txn.edit(("interaction", row.session_id, row.turn_id, row.request_id), row)
    txn.touch(txn.store.sessions[row.session_id])
    row.updated_at_ms = txn.at
    return row


def edit_session(txn: Transaction, row: SessionRow) -> SessionRow:
    """Announce a change of a session."""
    txn.edit(("session", row.id), row)
    row.updated_at_ms = txn.at
    return row


def merge_settings(txn: Transaction, session: SessionRow, patch: JsonObject) -> None:
    """Merge composer settings; the `model` column follows the setting."""
    merged = {**session.settings, **values.own(patch)}
    if values.same(merged, session.settings):
        return
    row = edit_session(txn, session)
    row.settings = merged
    model = patch.get("model")
    if isinstance(model, str):
        row.model = model


def observe_goal(txn: Transaction, session: SessionRow, goal: JsonObject) -> None:
    """The provider told its goal ({}: it has none). Seeing it does not prove that an operation took effect."""
    row = txn.store.goals.get(session.id)
    if row is None:
        if not goal:
            return
        row = GoalRow(session_id=session.id, observed=values.own(goal), sync_status="unknown")
        row.last_evidence = {"confidence": "provider_observed"}
        txn.insert(("goal", session.id), row)
        txn.touch(session)
        return
    cleared = not goal if not row.pending_operation_id else row.tombstoned
    if values.same(row.observed, goal) and cleared == row.tombstoned:
        return
    edited = edit_goal(txn, row)
    edited.observed = values.own(goal)
    edited.tombstoned = cleared
    edited.last_evidence = {"confidence": "provider_observed"}


def edit_goal(txn: Transaction, row: GoalRow) -> GoalRow:
    """Announce a change of a goal."""
    txn.edit(("goal", row.session_id), row)
    txn.touch(txn.store.sessions[row.session_id])
    return row


def _open_child(txn: Transaction, event: SessionEvent, lineage: Lineage) -> SessionRow:
    """A child session and its first Turn."""
    store = txn.store
    root = known_session(store, lineage.root_session_id)
    parent = known_session(store, lineage.parent_session_id)
    if parent.root_id != root.id:
        raise Conflict(
            "The parent of a child belongs to another root.",
            code="host_lineage",
            place=Place(path="$.lineage.parentSessionId"),
            expected=root.id,
            found=parent.root_id,
            hint="A child belongs to the root of its parent.",
        )
    row = SessionRow(
        id=event.session_id,
        kind="child",
        root_session_id=root.id,
        root_turn_id=lineage.root_turn_id,
        parent_session_id=parent.id,
        parent_turn_id=lineage.parent_turn_id,
        parent_tool_call_id=lineage.parent_tool_call_id,
        agent_target_id=parent.agent_target_id,
        provider=parent.provider,
        # A state needs one; the call that spawned the child is the same in every replay.
        provider_session_id=event.provider_session_id or lineage.parent_tool_call_id or root.provider_session_id,
        cwd=parent.cwd,
        title=event.title,
        created_at_ms=txn.at,
        updated_at_ms=txn.at,
    )
    txn.insert(("session", row.id), row)
    if event.turn_id:
        open_turn(txn, row, event.turn_id, origin="provider_initiated")
    return row


def _check_lineage(session: SessionRow, lineage: Lineage) -> None:
    known = (
        session.root_session_id,
        session.root_turn_id,
        session.parent_session_id,
        session.parent_turn_id,
        session.parent_tool_call_id,
    )
    told = (
        lineage.root_session_id,
        lineage.root_turn_id,
        lineage.parent_session_id,
        lineage.parent_turn_id,
        lineage.parent_tool_call_id,
    )
    if known != told:
        raise Conflict(
            "The lineage of a session cannot change.",
            code="host_lineage",
            place=Place(path="$.lineage"),
            expected=" ".join(known),
            found=" ".join(told),
            hint="Another child needs a session of its own.",
        )


def _update(txn: Transaction, session: SessionRow, event: SessionEvent) -> None:
    provider_id = event.provider_session_id
    if provider_id and provider_id != session.provider_session_id:
        turn = txn.store.turns[session.id].get(session.active_turn_id)
        if session.provider_session_id and turn is not None and turn.provider_phase == "running":
            raise Conflict(
                "The provider changed its session while a Turn was running in it.",
                code="host_provider_session",
                place=Place(path="$.providerSessionId"),
                expected=session.provider_session_id,
                found=provider_id,
                hint="The provider's messages contradict each other; the session cannot go on.",
            )
        edit_session(txn, session).provider_session_id = provider_id
    if event.title and event.title != session.title:
        edit_session(txn, session).title = event.title
    if event.resume_checkpoint is not None:
        bind_checkpoint(txn, session, event.resume_checkpoint)
    if event.settings:
        merge_settings(txn, session, event.settings)
    if event.goal is not None:
        observe_goal(txn, session, event.goal)


def _end(txn: Transaction, session: SessionRow, event: SessionEvent) -> None:
    turn = txn.store.turns[session.id].get(session.active_turn_id)
    failed = event.type == "session.failed"
    if turn is not None:
        settle(txn, turn, "failed" if failed else "completed", error=event.error)
    if session.kind == "child" and not session.ended_at_ms:
        edit_session(txn, session).ended_at_ms = max(txn.at, 1)
