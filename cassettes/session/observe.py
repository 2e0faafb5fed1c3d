"""What a checkpoint may hang on: the observation that one agent event makes (provider-adapters §3.3).

Recording and playback derive observations here, so both see the same ones. An observation has a type, the entity it
speaks of, and its *stable* fields: the part of the event that is the same in every run (cassette-v7 §10).
"""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.host.events import (
    AgentEvent,
    CallEvent,
    InteractionEvent,
    MessageEvent,
    RootTurnEvent,
    SessionEvent,
    TurnEvent,
)

JsonObject = dict[str, Any]

_TERMINAL = {"turn.completed", "turn.failed", "turn.canceled", "root_provider_turn.completed"}
_OBSERVED_TURN = _TERMINAL | {"turn.started", "turn.updated", "root_provider_turn.started"}


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime entity: the parts of its key (replay-state §10.2)."""

    kind: str  # session, turn, message, tool-call, interaction, goal, attachment
    session_id: str
    turn_id: str = ""
    entity_id: str = ""  # call id, request id
    message_id: str = ""
    ordinal: int = 0  # attachment: 1-based
    interaction_kind: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The runtime key; two entities with one key are the same."""
        if self.kind == "turn":
            return (self.kind, self.session_id, self.turn_id)
        if self.kind == "message":
            return (self.kind, self.session_id, self.message_id)
        if self.kind == "attachment":
            return (self.kind, self.session_id, self.message_id, str(self.ordinal))
        if self.kind == "tool-call":
            return (self.kind, self.session_id, self.turn_id, self.entity_id)
        if self.kind == "interaction":
            kind = self.interaction_kind or "approval"
            return (self.kind, self.session_id, self.turn_id, kind, self.entity_id)
        return (self.kind, self.session_id)


class ObservedFact(msgspec.Struct, frozen=True, kw_only=True):
    """One observation before it has an address. `entities` in order; the last one is the observation's own."""

    type: str
    entities: tuple[Entity, ...]
    stable: JsonObject
    child: bool = False
    phase: str = ""  # turn phase, for a `turn.phase` predicate
    status: str = ""
    outcome: str = ""

    @property
    def subject(self) -> Entity:
        return self.entities[-1]

    @property
    def terminal(self) -> bool:
        return self.type in _TERMINAL


def observation_of(event: AgentEvent) -> ObservedFact | None:
    """The observation of `event`, or None for an event that makes none."""
    match event:
        case RootTurnEvent() | TurnEvent():
            return _turn(event)
        case CallEvent():
            return None if event.live else _call(event)
        case InteractionEvent():
            return _interaction(event)
        case MessageEvent():
            return _message(event)
        case SessionEvent():
            return _child_session(event)
        case _:
            return None


def _stable(**fields: str | int) -> JsonObject:
    return {name: value for name, value in fields.items() if value}


def _turn(event: RootTurnEvent | TurnEvent) -> ObservedFact | None:
    if event.type not in _OBSERVED_TURN:
        return None
    phase = event.phase or ("settled" if event.type in _TERMINAL else "working")
    return ObservedFact(
        type=event.type,
        entities=(Entity(kind="turn", session_id=event.session_id, turn_id=event.turn_id),),
        stable=_stable(turnPhase=phase, turnOutcome=event.outcome),
        child=isinstance(event, TurnEvent) and event.lineage is not None,
        phase=phase,
        outcome=event.outcome,
    )


def _call(event: CallEvent) -> ObservedFact:
    return ObservedFact(
        type=event.type,
        entities=(
            Entity(kind="tool-call", session_id=event.session_id, turn_id=event.turn_id, entity_id=event.call_id),
        ),
        stable=_stable(status=event.status),
        child=event.lineage is not None,
        status=event.status,
    )


def _interaction(event: InteractionEvent) -> ObservedFact:
    entity = Entity(
        kind="interaction",
        session_id=event.session_id,
        turn_id=event.turn_id,
        entity_id=event.request_id,
        interaction_kind=event.kind,
    )
    return ObservedFact(
        type=event.type,
        entities=(entity,),
        stable=_stable(interactionKind=event.kind),
        child=event.lineage is not None,
        status="pending" if event.type == "interaction.requested" else "superseded",
    )


def _message(event: MessageEvent) -> ObservedFact | None:
    payload = event.payload
    turn = Entity(kind="turn", session_id=event.session_id, turn_id=event.turn_id, message_id=event.message_id)
    if payload.get("messageKind") == "plan":
        status = event.status or "completed"
        return ObservedFact(
            type="plan.proposed", entities=(turn,), stable=_stable(messageKind="plan", status=status), status=status
        )
    if payload.get("kind") == "agent_system_notice" and payload.get("noticeCommand") == "compact":
        status = str(payload.get("noticeCommandStatus", ""))
        return ObservedFact(
            type="compaction.updated",
            entities=(turn,),
            stable=_stable(noticeCommand="compact", noticeCommandStatus=status),
            status=status,
        )
    return _attachments(event)


def _attachments(event: MessageEvent) -> ObservedFact | None:
    content = event.payload.get("content")
    count = sum(1 for block in content if _is_attachment(block)) if isinstance(content, list) else 0
    if not count:
        return None
    message = Entity(kind="message", session_id=event.session_id, turn_id=event.turn_id, message_id=event.message_id)
    attachments = tuple(
        msgspec.structs.replace(message, kind="attachment", ordinal=number + 1) for number in range(count)
    )
    stable = _stable(attachmentCount=count, messageKind=event.kind, status=event.status)
    return ObservedFact(type="attachment.materialized", entities=(message, *attachments), stable=stable)


def _is_attachment(block: object) -> bool:
    return isinstance(block, dict) and bool(block.get("attachmentId"))


def _child_session(event: SessionEvent) -> ObservedFact | None:
    if event.lineage is None or event.type == "session.audit":
        return None  # a root session has no observation address (replay-state §16.2)
    status = "completed" if event.type in {"session.completed", "session.failed"} else "running"
    return ObservedFact(
        type=event.type,
        entities=(Entity(kind="session", session_id=event.session_id),),
        stable=_stable(sessionKind="child", status=status),
        child=True,
        status=status,
    )
