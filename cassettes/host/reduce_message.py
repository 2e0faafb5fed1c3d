"""Messages and tool calls: upsert, growing text, live output (replay-state §18, provider-adapters §3.2)."""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import Conflict, Place
from cassettes.host import values
from cassettes.host.events import CallEvent, MessageEvent
from cassettes.host.model import MessageRow, SessionRow
from cassettes.host.store import Store
from cassettes.host.transaction import Transaction

JsonObject = dict[str, Any]

TERMINAL = frozenset({"completed", "failed", "canceled", "errored"})
_WITHOUT_TURN = frozenset({"session_audit", "collaboration"})
_BODY = frozenset({"text", "content"})


def known_session(store: Store, session_id: str) -> SessionRow:
    """The session's row; an unknown one is a mistake of whoever made the event."""
    row = store.sessions.get(session_id)
    if row is None:
        raise Conflict(
            f"The session {session_id!r} is not known.",
            code="host_unknown_session",
            place=Place(path="$.sessionId"),
            hint="A session has to be created, or announced with its lineage, before it does anything.",
        )
    return row


def unknown_turn(session_id: str, turn_id: str) -> Conflict:
    """An event or a command names a Turn that does not exist."""
    return Conflict(
        f"The Turn {turn_id!r} of session {session_id!r} is not known.",
        code="host_unknown_turn",
        place=Place(path="$.turnId"),
        hint="A Turn has to be opened before anything happens in it.",
    )


def apply_message(txn: Transaction, event: MessageEvent) -> None:
    """`message.appended`, `message.created`, `session.audit`."""
    store = txn.store
    if event.delta:
        messages = store.messages.get(event.session_id)
        row = messages.get(event.message_id) if messages is not None else None
        if row is not None:
            if row.status not in TERMINAL:
                _append(txn, row, event)
            return
    payload = event.payload
    if event.delta:
        payload = {**payload, "text": event.delta}
        if isinstance(payload.get("content", ""), str):
            payload["content"] = event.delta
    kind = event.kind or ("session_audit" if event.type == "session.audit" else "text")
    upsert(
        txn,
        event.session_id,
        event.turn_id,
        event.message_id,
        role=event.role,
        kind=kind,
        status=event.status,
        payload=payload,
        semantics=event.semantics,
    )


def apply_call(txn: Transaction, event: CallEvent) -> None:
    """`call.started`, `call.completed`, `call.failed`, and live output."""
    message_id = f"toolcall:{event.call_id}"
    messages = txn.store.messages.get(event.session_id)
    row = messages.get(message_id) if messages is not None else None
    if event.output_delta and row is not None and not event.payload and event.status == row.status:
        _append_output(txn, row, event.output_delta)
        return
    payload = values.bounded_output(event.payload)
    if payload.get("status") != event.status or payload.get("callId") != event.call_id:
        payload = {"callId": event.call_id, **payload, "status": event.status}
        payload["callId"] = event.call_id
    row = upsert(
        txn,
        event.session_id,
        event.turn_id,
        message_id,
        role="assistant",
        kind="tool_call",
        status=event.status,
        payload=payload,
        semantics=None,
    )
    if "output" in event.payload:
        txn.store.output_bytes.pop((row.session_id, row.id), None)
    if event.output_delta:
        _append_output(txn, row, event.output_delta)


def upsert(
    txn: Transaction,
    session_id: str,
    turn_id: str,
    message_id: str,
    *,
    role: str,
    kind: str,
    status: str,
    payload: JsonObject,
    semantics: JsonObject | None,
) -> MessageRow:
    """Insert a message, or merge `payload` deeply into the one that exists.

    A terminal status never becomes open again; a completed call has no `error`. Without any difference nothing is
    written, because a write would move the message in the order of the state (trap T14).
    """
    store = txn.store
    session = known_session(store, session_id)
    row = store.messages[session_id].get(message_id)
    if row is None:
        return _insert(txn, session, turn_id, message_id, role, kind, status, payload, semantics)
    if turn_id and turn_id != row.turn_id:
        raise Conflict(
            f"The message {message_id!r} belongs to another Turn.",
            code="host_message_turn",
            place=Place(path="$.turnId"),
            expected=row.turn_id,
            found=turn_id,
            hint="A message never moves from one Turn to another; give the new one an id of its own.",
        )
    if row.status in TERMINAL and status not in TERMINAL:
        status = row.status
        payload = {name: item for name, item in payload.items() if name != "status"}
    new = values.merged(row.payload, payload)
    if kind == "tool_call" and status == "completed" and "error" in new:
        new = {name: item for name, item in new.items() if name != "error"}
    status = status or row.status
    said = row.semantics
    if semantics is not None and not values.same(said, semantics):
        said = values.own(semantics)
    if new is row.payload and status == row.status and said is row.semantics:
        return row
    key = ("message", session_id, message_id)
    added = _added_text(row.payload, new) if status == row.status and said is row.semantics else ""
    if added:
        txn.append(key, row, added)
    else:
        txn.edit(key, row)
    if new is not row.payload:
        values.share_text(new)
        row.payload = new
        store.index_call(row)
    row.status = status
    row.semantics = said
    _moved(txn, session, row)
    return row


def _insert(
    txn: Transaction,
    session: SessionRow,
    turn_id: str,
    message_id: str,
    role: str,
    kind: str,
    status: str,
    payload: JsonObject,
    semantics: JsonObject | None,
) -> MessageRow:
    if turn_id:
        if turn_id not in txn.store.turns[session.id]:
            raise unknown_turn(session.id, turn_id)
    elif kind not in _WITHOUT_TURN:
        raise unknown_turn(session.id, turn_id)
    owned: JsonObject = values.own(payload)
    if kind == "tool_call" and status == "completed":
        owned.pop("error", None)
    values.share_text(owned)
    if semantics is None:
        visible = role == "assistant" and kind == "text" and owned.get("kind") != "agent_system_notice"
        semantics = {"userVisibleAssistantResponse": visible}
    row = MessageRow(
        session_id=session.id,
        id=message_id,
        turn_id=turn_id,
        role=role,
        kind=kind,
        status=status,
        semantics=values.own(semantics),
        payload=owned,
        version=txn.next_version(session),
        created_seq=len(txn.store.messages[session.id]) + 1,
        created_at_ms=txn.at,
        updated_at_ms=txn.at,
    )
    txn.insert(("message", session.id, message_id), row)
    return row


def _moved(txn: Transaction, session: SessionRow, row: MessageRow) -> None:
    """The message changed: it gets the next version, and so goes to the end of the session's messages."""
    if row.version != session.message_version:
        messages = txn.store.messages[session.id]
        messages[row.id] = messages.pop(row.id)
    row.version = txn.next_version(session)
    row.updated_at_ms = txn.at


def _append(txn: Transaction, row: MessageRow, event: MessageEvent) -> None:
    key = ("message", row.session_id, row.id)
    if event.status and event.status != row.status:
        txn.edit(key, row)
        row.status = event.status
    else:
        txn.append(key, row, event.delta)
    txn.grown(values.grow_text(row.payload, event.delta))
    _moved(txn, txn.store.sessions[row.session_id], row)


def _append_output(txn: Transaction, row: MessageRow, delta: str) -> None:
    """Add live output of a running call to `payload.output.stdout`, up to the limit."""
    if row.status in TERMINAL:
        return
    store = txn.store
    place = (row.session_id, row.id)
    output = row.payload.get("output")
    found = output.get("stdout") if isinstance(output, dict) else None
    text = found if isinstance(found, str) else ""
    size = store.output_bytes.get(place)
    if size is None:
        size = len(text.encode("utf-8", "surrogatepass"))
    if text.endswith(values.TRUNCATED) and size > values.OUTPUT_LIMIT - len(values.TRUNCATED) - 4:
        return
    txn.edit(("message", *place), row)
    size += len(delta.encode("utf-8", "surrogatepass"))
    if not isinstance(output, dict) or not isinstance(found, str) or size > values.OUTPUT_LIMIT:
        text = values.bounded(text + delta)
        kept = output if isinstance(output, dict) else {}
        row.payload = {**row.payload, "output": {**kept, "stdout": text}}
        size = min(size, values.OUTPUT_LIMIT)
    else:
        txn.grown([(output, "stdout", len(text))])
        output["stdout"] = found = None  # only an unshared text grows in place
        text += delta
        output["stdout"] = text
    store.output_bytes[place] = size
    _moved(txn, store.sessions[row.session_id], row)


def _added_text(old: JsonObject, new: JsonObject) -> str:
    """What a whole text adds to the end of the known one, where that is the only difference."""
    before, after = old.get("text"), new.get("text")
    if not isinstance(before, str) or not isinstance(after, str) or len(after) <= len(before):
        return ""
    if old.keys() != new.keys() or not after.startswith(before):
        return ""
    if any(old[name] is not item for name, item in new.items() if name not in _BODY):
        return ""
    content = new.get("content", after)
    return after[len(before) :] if content is after or content == after else ""
