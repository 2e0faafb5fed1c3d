"""What a person or the runtime does to the canonical state: sessions, submits, durable operations.

Every function is one step of a transaction; the host commits it.
"""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import Conflict, Place
from cassettes.host import goals, product, values
from cassettes.host.model import SessionRow
from cassettes.host.records import OPEN_OPERATION, NewOperation, NewSession, OperationRow, Submit, SubmitRow
from cassettes.host.reduce_message import known_session, unknown_turn, upsert
from cassettes.host.reduce_session import edit_interaction, edit_session
from cassettes.host.reduce_turn import open_turn, settle
from cassettes.host.transaction import Transaction

JsonObject = dict[str, Any]


def create_session(txn: Transaction, new: NewSession) -> None:
    """A new root session; the same session again changes nothing."""
    row = SessionRow(
        id=new.id,
        kind="root",
        origin=new.origin,
        agent_target_id=new.agent_target_id,
        provider=new.provider,
        provider_session_id=new.provider_session_id,
        model=new.model,
        settings=values.own(new.settings),
        cwd=new.cwd,
        rail_section_kind=new.rail_section_kind or "conversations",
        rail_project_path=new.rail_project_path,
        rail_section_key=new.rail_section_key or "conversations",
        title=new.title,
        pinned=new.pinned,
        created_at_ms=txn.at,
        updated_at_ms=txn.at,
    )
    known = txn.store.sessions.get(new.id)
    if known is None:
        txn.insert(("session", new.id), row)
        return
    fixed = ("kind", "origin", "agent_target_id", "provider", "cwd", "rail_section_kind", "rail_project_path")
    for name in fixed:
        if getattr(known, name) != getattr(row, name):
            raise Conflict(
                f"The session {new.id!r} exists with another {name}.",
                code="host_session_exists",
                place=Place(path=f"$.{name}"),
                expected=getattr(known, name),
                found=getattr(row, name),
                hint="Give a new session an id of its own.",
            )


def submit(txn: Transaction, request: Submit) -> None:
    """A prompt was given: its Turn (or the running one) and its user message."""
    store = txn.store
    session = known_session(store, request.session_id)
    key = (session.id, request.client_submit_id)
    known = store.submits.get(key)
    if known is not None:
        if known.turn_id == request.turn_id and known.guidance == request.guidance:
            return
        raise Conflict(
            f"The submit {request.client_submit_id!r} was made already.",
            code="host_submit_exists",
            place=Place(path="$.clientSubmitId"),
            expected=known.turn_id,
            found=request.turn_id,
            hint="Every prompt needs a submit id of its own.",
        )
    if request.guidance:
        turn = store.turns[session.id].get(request.turn_id)
        if turn is None or turn.phase == "settled":
            raise unknown_turn(session.id, request.turn_id)
    else:
        source = (request.source_goal_operation_id, request.source_goal_revision, request.source_goal_repair_epoch)
        open_turn(
            txn,
            session,
            request.turn_id,
            origin=request.origin,
            capability_refs=request.capability_refs,
            source_goal=source,
        )
        product.snapshot_turn(txn, session.id, request.turn_id)
    message_id = f"client-submit:user:{request.client_submit_id}"
    txn.insert(
        ("submit", *key),
        SubmitRow(
            session_id=session.id,
            client_submit_id=request.client_submit_id,
            turn_id=request.turn_id,
            message_id=message_id,
            guidance=request.guidance,
        ),
    )
    upsert(
        txn,
        session.id,
        request.turn_id,
        message_id,
        role="user",
        kind="text",
        status="completed",
        payload=_prompt_payload(request),
        semantics={"userVisibleAssistantResponse": False},
    )


def end_submit(txn: Transaction, session_id: str, client_submit_id: str, error: str | JsonObject | None) -> None:
    """The provider took the prompt (`error` None), or refused it: then its Turn has failed."""
    store = txn.store
    row = store.submits.get((session_id, client_submit_id))
    if row is None:
        raise Conflict(
            f"The submit {client_submit_id!r} is not known.",
            code="host_unknown_submit",
            place=Place(path="$.clientSubmitId"),
            hint="A prompt has to be submitted before it can be accepted or rejected.",
        )
    if row.state != "prepared":
        return
    txn.keep(("submit", session_id, client_submit_id), row)
    if error is None:
        row.state = "accepted"
        if not row.guidance:
            product.accept_turn(txn, session_id, row.turn_id)
        return
    row.state = "rejected"
    if row.guidance:  # the Turn goes on without it
        message = store.messages[session_id][row.message_id]
        upsert(
            txn,
            session_id,
            row.turn_id,
            row.message_id,
            role=message.role,
            kind=message.kind,
            status="failed",
            payload={},
            semantics=None,
        )
        return
    turn = store.turns[session_id][row.turn_id]
    settle(txn, turn, "failed", error=_error(error))


def set_title(txn: Transaction, session_id: str, title: str) -> None:
    """Give a session a title."""
    session = known_session(txn.store, session_id)
    if session.title != title:
        edit_session(txn, session).title = title


def set_pinned(txn: Transaction, session_id: str, pinned: bool) -> None:
    """Pin or release a session."""
    session = known_session(txn.store, session_id)
    if session.pinned != pinned:
        edit_session(txn, session).pinned = pinned


def begin(txn: Transaction, new: NewOperation) -> None:
    """Begin a durable operation; the same one again changes nothing."""
    session = known_session(txn.store, new.session_id)
    row = OperationRow(
        id=new.id,
        session_id=session.id,
        kind=new.kind,
        turn_id=new.turn_id,
        request_id=new.request_id,
        payload=values.own(new.payload),
    )
    known = txn.store.operations.get(new.id)
    if known is not None:
        identity = (known.session_id, known.kind, known.turn_id, known.request_id)
        if identity == (row.session_id, row.kind, row.turn_id, row.request_id) and values.same(
            known.payload, row.payload
        ):
            return
        raise Conflict(
            f"The operation {new.id!r} exists with other content.",
            code="host_operation_exists",
            place=Place(path="$.id"),
            hint="Every operation needs an id of its own.",
        )
    if new.turn_id and new.turn_id not in txn.store.turns[session.id]:
        raise unknown_turn(session.id, new.turn_id)
    txn.insert(("operation", new.id), row)


def complete(txn: Transaction, operation_id: str, result: JsonObject) -> None:
    """An operation took effect; its effect is applied here, in the same transaction."""
    row = _open(txn, operation_id)
    if row is None:
        return
    _effect(txn, row, result)
    if row.state in OPEN_OPERATION:
        row.state = "completed"
    row.result = values.own(result)


def fail(txn: Transaction, operation_id: str, error: str) -> None:
    """An operation failed; nothing changes but its goal's status."""
    row = _open(txn, operation_id)
    if row is None:
        return
    row.state = "failed"
    row.error = error
    if row.kind.startswith("goal_"):
        goals.fail(txn, row, error)


def _open(txn: Transaction, operation_id: str) -> OperationRow | None:
    row = txn.store.operations.get(operation_id)
    if row is None:
        raise Conflict(
            f"The operation {operation_id!r} is not known.",
            code="host_unknown_operation",
            place=Place(path="$.id"),
            hint="An operation has to be begun before it can end.",
        )
    if row.state not in OPEN_OPERATION:
        return None
    txn.keep(("operation", row.id), row)
    return row


def _effect(txn: Transaction, row: OperationRow, result: JsonObject) -> None:
    store = txn.store
    if row.kind == "cancel_turn":
        turn = store.turns[row.session_id].get(row.turn_id)
        if turn is not None:
            settle(txn, turn, "canceled")
    elif row.kind in ("interactive_response", "plan_decision"):
        interaction = store.interactions[row.session_id].get((row.turn_id, row.request_id))
        if interaction is not None and interaction.status == "pending":
            edited = edit_interaction(txn, interaction)
            edited.status = "answered"
            edited.output = _answer(row, result)
        if row.kind == "plan_decision" and isinstance(row.payload.get("notice"), dict):
            _plan_notice(txn, row, row.payload["notice"])
    elif row.kind.startswith("goal_"):
        goals.applied(txn, row, result.get("goal"))


def _answer(row: OperationRow, result: JsonObject) -> JsonObject:
    output = result.get("output")
    if isinstance(output, dict):
        owned: JsonObject = values.own(output)
        return owned
    said = {name: row.payload.get(name) for name in ("action", "optionId", "payload")}
    return {name: values.own(item) for name, item in said.items() if item}


def _plan_notice(txn: Transaction, row: OperationRow, notice: JsonObject) -> None:
    upsert(
        txn,
        row.session_id,
        row.turn_id,
        f"plan-decision:{row.id}:status",
        role="assistant",
        kind="text",
        status="completed",
        payload={"kind": "agent_system_notice", **notice, "operationId": row.id},
        semantics={"userVisibleAssistantResponse": False},
    )


def _prompt_payload(request: Submit) -> JsonObject:
    blocks = request.content
    texts = [block.get("text") for block in blocks if block.get("type", "text") == "text"]
    text = "\n".join(one for one in texts if isinstance(one, str))
    payload: JsonObject = {"source": "runtime", "clientSubmitId": request.client_submit_id, "text": text}
    payload["content"] = text if len(texts) == len(blocks) else blocks
    if request.display_prompt:
        payload["displayPrompt"] = request.display_prompt
    if request.guidance:
        payload["guidance"] = True
    return payload


def _error(error: str | JsonObject) -> JsonObject:
    if isinstance(error, dict):
        return error
    return {"message": error or "The provider refused the prompt."}
