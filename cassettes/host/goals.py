"""The durable side of goals: control operations and their evidence (replay-state §3.7, §18)."""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import Conflict, Place
from cassettes.host import values
from cassettes.host.events import GoalEvent
from cassettes.host.model import GoalRow, SessionRow
from cassettes.host.records import OPEN_OPERATION, OperationKind, OperationRow
from cassettes.host.reduce_message import known_session, upsert
from cassettes.host.reduce_session import edit_goal
from cassettes.host.transaction import Transaction

JsonObject = dict[str, Any]

_KINDS: dict[str, OperationKind] = {
    "set": "goal_set",
    "pause": "goal_pause",
    "resume": "goal_resume",
    "clear": "goal_clear",
}


def control(txn: Transaction, session_id: str, operation_id: str, action: str, objective: str) -> None:
    """set, pause, resume or clear: the desired goal, its next revision, the operation and the audit message."""
    session = known_session(txn.store, session_id)
    kind = _KINDS.get(action)
    row = txn.store.goals.get(session_id)
    if kind is None or (row is None and action in ("pause", "resume")):
        raise Conflict(
            "There is no goal to pause or resume." if kind else f"{action!r} is nothing that a goal can do.",
            code="host_goal_missing" if kind else "host_goal_action",
            place=Place(path="$.action"),
            found=action,
            hint="Set a goal first." if kind else "Use set, pause, resume or clear.",
        )
    if operation_id in txn.store.operations:
        return
    if row is None:
        row = GoalRow(session_id=session_id)
        txn.insert(("goal", session_id), row)
    row = edit_goal(txn, row)
    if action == "set":
        row.desired = {"objective": objective, "status": "active"}
    elif action == "clear":
        row.desired = {}
    else:
        row.desired = {**row.desired, "status": "paused" if action == "pause" else "active"}
    row.tombstoned = action == "clear"
    row.revision += 1
    row.sync_status = "pending"
    row.pending_operation_id = operation_id
    row.last_error = ""
    operation = OperationRow(id=operation_id, session_id=session_id, kind=kind, payload={"revision": row.revision})
    txn.insert(("operation", operation_id), operation)
    _audit(txn, session, row, action, operation_id)


def applied(txn: Transaction, operation: OperationRow, goal: object) -> None:
    """A goal operation took effect. `goal` is what the provider reports, if it does."""
    row = txn.store.goals.get(operation.session_id)
    if row is None or row.pending_operation_id not in ("", operation.id):
        return
    row = edit_goal(txn, row)
    if isinstance(goal, dict):
        row.observed = values.own(goal)
    elif row.tombstoned:
        row.observed = {}
    row.sync_status = "synced"
    row.pending_operation_id = ""
    row.last_evidence = {"confidence": "provider_observed"}
    row.last_error = ""


def fail(txn: Transaction, operation: OperationRow, error: str) -> None:
    """A goal operation failed."""
    row = txn.store.goals.get(operation.session_id)
    if row is not None and row.pending_operation_id == operation.id:
        row = edit_goal(txn, row)
        row.sync_status = "failed"
        row.last_error = error
        row.pending_operation_id = ""


def apply_goal(txn: Transaction, event: GoalEvent) -> None:
    """`goal.control_applied`, `goal.reconcile_required`: evidence of the provider for a goal operation."""
    store = txn.store
    known_session(store, event.session_id)
    row = store.goals.get(event.session_id)
    if row is not None and event.revision and event.revision < row.revision:
        return  # evidence for a generation that is over
    operation = store.operations.get(event.operation_id or (row.pending_operation_id if row else ""))
    if operation is None or operation.state not in OPEN_OPERATION:
        return
    txn.keep(("operation", operation.id), operation)
    if event.error:
        operation.state = "failed"
        operation.error = event.error
        fail(txn, operation, event.error)
    elif event.type == "goal.control_applied":
        operation.state = "completed"
        applied(txn, operation, event.goal)
    elif row is not None:
        operation.state = "superseded"
        row = edit_goal(txn, row)
        row.sync_status = "diverged"
        row.pending_operation_id = ""


def _audit(txn: Transaction, session: SessionRow, row: GoalRow, action: str, operation_id: str) -> None:
    upsert(
        txn,
        session.id,
        "",
        f"goal-control:{operation_id}",
        role="system",
        kind="session_audit",
        status="completed",
        payload={
            "source": "runtime",
            "action": action,
            "auditId": f"goal-control:{operation_id}",
            "operationId": operation_id,
            "goalRevision": row.revision,
            "goalControl": {"action": action, **row.desired},
        },
        semantics={"userVisibleAssistantResponse": False},
    )
