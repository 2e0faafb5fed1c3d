"""The canonical state of one workspace: what is true, in what order it became true (replay-state §17, §18).

Every method that changes something is one transaction and returns its commit; a refused change leaves nothing behind.
Reads return the live rows: whoever keeps one must copy it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from cassettes.core.state import Issue, ReplayState, Workflow
from cassettes.host import capture as capturing
from cassettes.host import goals, operations, product, restore
from cassettes.host.events import (
    AgentEvent,
    CallEvent,
    GoalEvent,
    InteractionEvent,
    MessageEvent,
    RootTurnEvent,
    SessionEvent,
    TurnEvent,
)
from cassettes.host.model import Commit, GoalRow, InteractionRow, MessageRow, SessionRow, TurnRow
from cassettes.host.records import (
    OPEN_OPERATION,
    NewOperation,
    NewSession,
    OperationKind,
    OperationRow,
    Submit,
    SubmitRow,
)
from cassettes.host.reduce_message import apply_call, apply_message, known_session
from cassettes.host.reduce_session import apply_interaction, apply_session, merge_settings
from cassettes.host.reduce_turn import apply_root_turn, apply_turn
from cassettes.host.store import Store
from cassettes.host.transaction import Cause, Transaction

__all__ = ["Host", "NewOperation", "NewSession", "OperationKind", "OperationRow", "Submit", "SubmitRow"]

JsonObject = dict[str, Any]
Step = Callable[[Transaction], None]

_FLUSH_EVERY = 4096  # commits; so that a crash of this process loses little and memory of the log stays small
_REDUCERS: dict[type, Callable[[Transaction, Any], None]] = {
    MessageEvent: apply_message,
    CallEvent: apply_call,
    TurnEvent: apply_turn,
    RootTurnEvent: apply_root_turn,
    SessionEvent: apply_session,
    InteractionEvent: apply_interaction,
    GoalEvent: goals.apply_goal,
}


class IdSource(Protocol):
    """Where fresh identities come from."""

    def new(self, kind: str) -> str: ...


class Host:
    """One workspace of one user."""

    def __init__(self, store: Store, *, user_id: str, now: Callable[[], int], ids: IdSource) -> None:
        self._store = store
        self._user_id = user_id
        self._now = now
        self._ids = ids

    @classmethod
    def open(
        cls,
        database: Path | str,
        *,
        workspace_id: str,
        user_id: str,
        now: Callable[[], int],
        ids: IdSource,
    ) -> Host:
        """Open or create the store of a workspace. `now` gives epoch milliseconds."""
        return cls(Store(database, workspace_id=workspace_id, user_id=user_id), user_id=user_id, now=now, ids=ids)

    def flush(self) -> None:
        """Write everything that was committed to the file, in one database transaction."""
        self._store.flush()

    def close(self) -> None:
        """Flush and close. No call is allowed afterwards."""
        self._store.close()

    # ------------------------------------------------------------------ what a person or the runtime does

    def create_session(self, new: NewSession) -> Commit:
        """Create a root session. The same session again changes nothing."""
        return self._commit("activity", new.id, lambda txn: operations.create_session(txn, new))

    def update_settings(self, session_id: str, patch: JsonObject) -> Commit:
        """Merge composer settings; `model` also becomes the session's model."""
        return self._commit(
            "activity", session_id, lambda txn: merge_settings(txn, known_session(txn.store, session_id), patch)
        )

    def set_title(self, session_id: str, title: str) -> Commit:
        """Give a session a title."""
        return self._commit("activity", session_id, lambda txn: operations.set_title(txn, session_id, title))

    def set_pinned(self, session_id: str, pinned: bool) -> Commit:
        """Pin or release a session."""
        return self._commit("activity", session_id, lambda txn: operations.set_pinned(txn, session_id, pinned))

    def submit(self, request: Submit) -> Commit:
        """Open a Turn with the person's prompt, or with `guidance` add the prompt to the running Turn."""
        return self._commit("activity", request.client_submit_id, lambda txn: operations.submit(txn, request))

    def accept_submit(self, session_id: str, client_submit_id: str) -> Commit:
        """The provider took the prompt."""
        return self._commit(
            "activity", client_submit_id, lambda txn: operations.end_submit(txn, session_id, client_submit_id, None)
        )

    def reject_submit(self, session_id: str, client_submit_id: str, error: str | JsonObject) -> Commit:
        """The provider refused the prompt: its Turn has failed; refused guidance only fails its message."""
        return self._commit(
            "activity", client_submit_id, lambda txn: operations.end_submit(txn, session_id, client_submit_id, error)
        )

    def begin_operation(self, new: NewOperation) -> Commit:
        """Begin a durable operation. The same one again changes nothing."""
        return self._commit("operation", new.id, lambda txn: operations.begin(txn, new))

    def complete_operation(self, operation_id: str, result: JsonObject) -> Commit:
        """End an operation and apply its effect. `result` may hold `output` (answers) or `goal`."""
        return self._commit("operation", operation_id, lambda txn: operations.complete(txn, operation_id, result))

    def fail_operation(self, operation_id: str, error: str) -> Commit:
        """End an operation without effect."""
        return self._commit("operation", operation_id, lambda txn: operations.fail(txn, operation_id, error))

    def control_goal(self, session_id: str, operation_id: str, action: str, objective: str = "") -> Commit:
        """set, pause, resume or clear: begins the goal operation that `complete_operation` or a GoalEvent ends."""
        return self._commit(
            "operation", operation_id, lambda txn: goals.control(txn, session_id, operation_id, action, objective)
        )

    def set_mode(self, session_id: str, *, state: str, source: str, effect: int = 50, speed: int = 50) -> Commit:
        """Switch Tutti Mode of a session."""

        def step(txn: Transaction) -> None:
            names = self._ids.new("activation"), self._ids.new("revision")
            product.set_mode(
                txn,
                session_id,
                activation_id=names[0],
                revision_id=names[1],
                state=state,
                source=source,
                effect=effect,
                speed=speed,
            )

        return self._commit("activity", session_id, step)

    def put_workflow(self, workflow: Workflow) -> Commit:
        """Create or replace a Workflow."""
        return self._commit("activity", workflow.id, lambda txn: product.put_workflow(txn, workflow))

    def put_issue(self, issue: Issue) -> Commit:
        """Create or replace an Issue with its tasks."""
        return self._commit("activity", issue.id, lambda txn: product.put_issue(txn, issue))

    # ------------------------------------------------------------------ what the provider does

    def apply(self, events: Sequence[AgentEvent], *, cause_ref: str, cause: Cause = "provider") -> Commit:
        """Commit everything that one provider unit caused; all of it or, when it contradicts the state, nothing.

        Raises `Conflict` with a `host_…` code for an event that names something unknown or contradicts what is
        immutable.
        """
        store = self._store
        txn = Transaction(store, self._now())
        try:
            for event in events:
                _REDUCERS[type(event)](txn, event)
        except BaseException:
            txn.undo()
            raise
        commit = txn.commit(cause, cause_ref)
        if len(store.log) >= _FLUSH_EVERY:
            store.flush()
        return commit

    def _commit(self, cause: Cause, cause_ref: str, step: Step) -> Commit:
        txn = Transaction(self._store, self._now())
        try:
            step(txn)
        except BaseException:
            txn.undo()
            raise
        return txn.commit(cause, cause_ref)

    # ------------------------------------------------------------------ documents

    def restore(self, state: ReplayState, *, replay_root: str, user_id: str = "") -> Commit:
        """Take in the history of a document, its tokens resolved to the absolute `replay_root`.

        The same document again changes nothing. Raises `Conflict` (`host_restore_conflict`) or `CassetteRejected`.
        """
        owner = user_id or self._user_id
        root_id = state.agent.root_session_id
        return self._commit("restore", root_id, lambda txn: restore.restore(txn, state, replay_root, owner))

    def capture(
        self,
        root_session_id: str,
        *,
        replay_root: str = "",
        provider_home: capturing.ProviderHome | None = None,
    ) -> ReplayState:
        """The settled graph of a session as a portable document.

        Paths are made relative to the root session's directory (`replay_root` where it has none), generated images
        to what `provider_home` gives for their session. Raises `CassetteRejected` with the path of what cannot be
        captured.
        """
        return capturing.capture(self._store, root_session_id, replay_root, provider_home)

    # ------------------------------------------------------------------ reads

    def sessions(self) -> list[SessionRow]:
        """All sessions, in order of creation."""
        return list(self._store.sessions.values())

    def session(self, session_id: str) -> SessionRow | None:
        return self._store.sessions.get(session_id)

    def graph(self, session_id: str) -> list[SessionRow]:
        """The sessions of the graph that a session belongs to: root first, then in order of creation."""
        row = self._store.sessions.get(session_id)
        return [self._store.sessions[name] for name in self._store.graphs.get(row.root_id, ())] if row else []

    def turn(self, session_id: str, turn_id: str) -> TurnRow | None:
        return self._store.turns.get(session_id, {}).get(turn_id)

    def turns(self, session_id: str) -> list[TurnRow]:
        """The Turns of a session, in order of creation."""
        return list(self._store.turns.get(session_id, {}).values())

    def active_turn(self, session_id: str) -> TurnRow | None:
        """The live Turn of a session."""
        row = self._store.sessions.get(session_id)
        return self.turn(session_id, row.active_turn_id) if row is not None and row.active_turn_id else None

    def message(self, session_id: str, message_id: str) -> MessageRow | None:
        return self._store.messages.get(session_id, {}).get(message_id)

    def messages(self, session_id: str, turn_id: str | None = None) -> list[MessageRow]:
        """The messages of a session or of one of its Turns, in order of their last change (`version`)."""
        if turn_id is None:
            return list(self._store.messages.get(session_id, {}).values())
        rows = self._store.turn_messages.get((session_id, turn_id), {}).values()
        return sorted(rows, key=lambda row: row.version)

    def call(self, session_id: str, turn_id: str, call_id: str) -> MessageRow | None:
        """The message of a tool call."""
        return self._store.calls.get((session_id, turn_id, call_id))

    def interaction(self, session_id: str, turn_id: str, request_id: str) -> InteractionRow | None:
        return self._store.interactions.get(session_id, {}).get((turn_id, request_id))

    def interactions(self, session_id: str, pending_only: bool = False) -> list[InteractionRow]:
        """The Interactions of a session, in order of creation."""
        rows = self._store.interactions.get(session_id, {}).values()
        return [row for row in rows if not pending_only or row.status == "pending"]

    def goal(self, session_id: str) -> GoalRow | None:
        return self._store.goals.get(session_id)

    def operation(self, operation_id: str) -> OperationRow | None:
        return self._store.operations.get(operation_id)

    def is_settled(self, session_id: str) -> bool:
        """Whether nothing is going on in the graph of a session: no live Turn, no open operation."""
        members = {row.id for row in self.graph(session_id)}
        if any(self._store.sessions[name].active_turn_id for name in members):
            return False
        return not any(
            row.session_id in members and row.state in OPEN_OPERATION for row in self._store.operations.values()
        )
