"""Turns: opening, phases, provider binding, the one end (replay-state §18, provider-adapters §3.1)."""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import Conflict, Place
from cassettes.host import values
from cassettes.host.events import RootTurnEvent, TurnEvent
from cassettes.host.model import InteractionRow, SessionRow, TurnRow
from cassettes.host.reduce_message import known_session, unknown_turn
from cassettes.host.store import Store
from cassettes.host.transaction import Transaction

JsonObject = dict[str, Any]

_PHASES = {
    "working": "running",
    "running": "running",
    "streaming": "running",
    "waiting": "waiting",
    "waiting_approval": "waiting",
    "awaiting_approval": "waiting",
    "waiting_input": "waiting",
    "settling": "settling",
}
_NEXT = {
    "submitted": frozenset({"running", "waiting", "settling"}),
    "running": frozenset({"waiting", "settling"}),
    "waiting": frozenset({"running", "settling"}),
    "settling": frozenset[str](),
    "settled": frozenset[str](),
}
_OUTCOMES = frozenset({"completed", "failed", "canceled", "interrupted"})
_ENDS = {"turn.completed": "completed", "turn.failed": "failed", "turn.canceled": "canceled"}
_WATERMARK = ("finalAssistantMessageResolved", "finalAssistantMessageId")


def open_turn(
    txn: Transaction,
    session: SessionRow,
    turn_id: str,
    *,
    origin: str,
    capability_refs: list[JsonObject] | None = None,
    source_goal: tuple[str, int, int] = ("", 0, 0),
) -> TurnRow:
    """Open a Turn, `submitted` and active. A session has at most one live Turn."""
    turns = txn.store.turns[session.id]
    if turn_id in turns:
        raise Conflict(
            f"The Turn {turn_id!r} exists already.",
            code="host_turn_exists",
            place=Place(path="$.turnId"),
            hint="Every Turn needs an id of its own.",
        )
    if session.active_turn_id:
        raise Conflict(
            "Another Turn of the session is still live.",
            code="host_turn_active",
            place=Place(path="$.turnId"),
            expected="no live Turn",
            found=session.active_turn_id,
            hint="Wait until it has ended, or steer it.",
        )
    row = TurnRow(
        session_id=session.id,
        id=turn_id,
        seq=len(turns) + 1,
        phase="submitted",
        origin=origin,
        capability_refs=values.own(capability_refs or []),
        source_goal_operation_id=source_goal[0],
        source_goal_revision=source_goal[1],
        source_goal_repair_epoch=source_goal[2],
        started_at_ms=txn.at,
        updated_at_ms=txn.at,
    )
    txn.insert(("turn", session.id, turn_id), row)
    _edit_session(txn, session).active_turn_id = turn_id
    return row


def advance(txn: Transaction, row: TurnRow, phase: str) -> None:
    """Move a Turn on; a stale or illegal step changes nothing."""
    if phase in _NEXT[row.phase]:
        edited = _edit(txn, row)
        edited.phase = phase  # type: ignore[assignment]


def settle(
    txn: Transaction,
    row: TurnRow,
    outcome: str,
    *,
    error: JsonObject | None = None,
    command: JsonObject | None = None,
    file_changes: JsonObject | None = None,
) -> None:
    """End a Turn, once. Its pending Interactions are superseded, the watermark is set, the session is free.

    Where a cancel of the Turn is under way, an interruption is that cancel: the outcome is `canceled`.
    """
    if row.phase == "settled":
        return
    store = txn.store
    if outcome == "interrupted" and store.open_operation(row.session_id, "cancel_turn", row.id):
        outcome = "canceled"
    for one in pending(store, row.session_id, row.id):
        txn.edit(("interaction", one.session_id, one.turn_id, one.request_id), one)
        one.status = "superseded"
        one.updated_at_ms = txn.at
    row = _edit(txn, row)
    row.phase = "settled"
    row.outcome = outcome if outcome in _OUTCOMES else "completed"
    row.settled_at_ms = txn.at
    if row.provider_phase == "running":
        row.provider_phase = "completed"
        row.provider_outcome = row.outcome
    if error:
        row.error = values.own(error)
    if file_changes is not None:
        row.file_changes = values.own(file_changes) or None
    row.completed_command = {**(row.completed_command or {}), **values.own(command or {}), **_watermark(store, row)}
    session = store.sessions[row.session_id]
    if session.active_turn_id == row.id:
        _edit_session(txn, session).active_turn_id = ""
    _settle_root_of(txn, session)


def apply_turn(txn: Transaction, event: TurnEvent) -> None:
    """`turn.started`, `.updated`, `.completed`, `.failed`, `.canceled`."""
    session = known_session(txn.store, event.session_id)
    row = txn.store.turns[session.id].get(event.turn_id)
    if row is None:
        if event.type != "turn.started" or session.kind != "child":
            raise unknown_turn(session.id, event.turn_id)
        row = open_turn(txn, session, event.turn_id, origin="provider_initiated")  # a child works on
    if row.phase == "settled":
        return
    if event.type in _ENDS:
        settle(
            txn,
            row,
            event.outcome or _ENDS[event.type],
            error=event.error,
            command=event.completed_command,
            file_changes=event.file_changes,
        )
        return
    if event.type == "turn.started":
        advance(txn, row, _PHASES.get(event.phase, "running"))
        if not session.active_turn_id:
            _edit_session(txn, session).active_turn_id = row.id
    elif event.phase:
        advance(txn, row, _PHASES.get(event.phase, ""))
    if event.file_changes is not None and not values.same(row.file_changes or {}, event.file_changes):
        _edit(txn, row).file_changes = values.own(event.file_changes)
    if event.completed_command:
        merged = values.merged(row.completed_command or {}, event.completed_command)
        if merged is not row.completed_command:
            _edit(txn, row).completed_command = merged


def apply_root_turn(txn: Transaction, event: RootTurnEvent) -> None:
    """`root_provider_turn.started`, `.checkpoint`, `.completed`."""
    session = known_session(txn.store, event.session_id)
    if event.resume_checkpoint is not None:
        bind_checkpoint(txn, session, event.resume_checkpoint)
    if event.type == "root_provider_turn.checkpoint":
        return
    row = txn.store.turns[session.id].get(event.turn_id)
    if row is None:
        if event.type != "root_provider_turn.started" or not event.origin:
            raise unknown_turn(session.id, event.turn_id)
        row = open_turn(txn, session, event.turn_id, origin=event.origin)
    if event.type == "root_provider_turn.started":
        if row.phase != "settled":
            _bind_provider(txn, row, event.provider_turn_id)
            advance(txn, row, "running")
        return
    if row.provider_phase != "completed" or row.phase != "settled":
        _complete_provider(txn, row, event)


def bind_checkpoint(txn: Transaction, session: SessionRow, checkpoint: JsonObject) -> None:
    """Keep what a later connection needs to resume the provider."""
    if not values.same(session.provider_resume_checkpoint, checkpoint):
        _edit_session(txn, session).provider_resume_checkpoint = values.own(checkpoint)


def pending(store: Store, session_id: str, turn_id: str) -> list[InteractionRow]:
    """The pending Interactions of a Turn."""
    rows = store.interactions[session_id].values()
    return [one for one in rows if one.turn_id == turn_id and one.status == "pending"]


def live_children(store: Store, row: TurnRow) -> bool:
    """Whether a child that this Turn of the root started still has a live Turn."""
    return any(
        store.sessions[name].active_turn_id
        for name in store.graphs.get(row.session_id, ())
        if store.sessions[name].kind == "child" and store.sessions[name].root_turn_id == row.id
    )


def without_watermark(command: JsonObject) -> JsonObject:
    """A completed command without the members that a settlement adds."""
    return {name: item for name, item in command.items() if name not in _WATERMARK}


def _bind_provider(txn: Transaction, row: TurnRow, provider_turn_id: str) -> None:
    store = txn.store
    if provider_turn_id and provider_turn_id != row.root_provider_turn_id:
        owner = store.provider_turns.get((row.session_id, provider_turn_id), row.id)
        rebound = row.root_provider_turn_id and row.provider_phase == "running"
        if owner != row.id or rebound:
            raise Conflict(
                "A provider Turn was bound to a second Turn." if owner != row.id else "A Turn was bound twice.",
                code="host_provider_turn_bound",
                place=Place(path="$.providerTurnId"),
                expected=owner if owner != row.id else row.root_provider_turn_id,
                found=row.id if owner != row.id else provider_turn_id,
                hint="The provider's messages contradict each other; the session cannot go on.",
            )
        _edit(txn, row).root_provider_turn_id = provider_turn_id
        store.provider_turns[row.session_id, provider_turn_id] = row.id
    if row.provider_phase != "running":
        edited = _edit(txn, row)
        edited.provider_phase = "running"
        edited.provider_outcome = ""


def _complete_provider(txn: Transaction, row: TurnRow, event: RootTurnEvent) -> None:
    if event.provider_turn_id and not row.root_provider_turn_id and row.phase != "settled":
        _bind_provider(txn, row, event.provider_turn_id)
    outcome = event.outcome or "completed"
    if row.provider_phase != "completed" or row.provider_outcome != outcome:
        edited = _edit(txn, row)
        edited.provider_phase = "completed"
        edited.provider_outcome = outcome
    if event.error and row.phase != "settled":
        _edit(txn, row).error = values.own(event.error)
    if not live_children(txn.store, row):
        settle(txn, row, outcome)


def _settle_root_of(txn: Transaction, session: SessionRow) -> None:
    """The last child of a Turn has ended: so has the Turn, where its provider Turn was complete already."""
    if session.kind != "child":
        return
    store = txn.store
    root = store.turns.get(session.root_session_id, {}).get(session.root_turn_id)
    if root is None or root.phase == "settled" or root.provider_phase != "completed":
        return
    if not live_children(store, root):
        settle(txn, root, root.provider_outcome)


def _watermark(store: Store, row: TurnRow) -> JsonObject:
    found: JsonObject = {"finalAssistantMessageResolved": True}
    newest = None
    for message in store.turn_messages.get((row.session_id, row.id), {}).values():
        if message.role != "assistant" or message.kind != "text":
            continue
        if message.payload.get("kind") == "agent_system_notice":
            continue
        if newest is None or message.version > newest.version:
            newest = message
    if newest is not None:
        found["finalAssistantMessageId"] = newest.id
    return found


def _edit(txn: Transaction, row: TurnRow) -> TurnRow:
    txn.edit(("turn", row.session_id, row.id), row)
    txn.touch(txn.store.sessions[row.session_id])
    row.updated_at_ms = txn.at
    return row


def _edit_session(txn: Transaction, session: SessionRow) -> SessionRow:
    txn.edit(("session", session.id), session)
    session.updated_at_ms = txn.at
    return session
