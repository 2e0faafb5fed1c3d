"""The common vocabulary in which provider adapters tell what happened (provider-adapters §3.1).

The spec calls these "activity events"; here they are *agent events*, so that nobody takes them for events of the
Cassette's activity timeline. `type` is the spec's name. Every event names the canonical session and Turn it
belongs to. An adapter emits them, the host commits them, observers derive checkpoint observations from them.
"""

from __future__ import annotations

from typing import Any

import msgspec

JsonObject = dict[str, Any]


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """Where a child session comes from; immutable."""

    root_session_id: str
    root_turn_id: str
    parent_session_id: str
    parent_turn_id: str
    parent_tool_call_id: str


class SessionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`session.started`, `.updated`, `.completed`, `.failed`. With `lineage` it speaks of a child."""

    type: str
    session_id: str
    turn_id: str = ""  # the child's own Turn, opened by `session.started`
    lineage: Lineage | None = None
    provider_session_id: str = ""
    title: str = ""
    resume_checkpoint: JsonObject | None = None
    settings: JsonObject | None = None  # settings that the provider changed (plan mode left, mode accepted)
    goal: JsonObject | None = None  # observed goal; {} = cleared
    usage: JsonObject | None = None  # not canonical; the feed may show it
    activity: str = ""  # `idle` or `running`
    error: JsonObject | None = None


class TurnEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`turn.started`, `.updated`, `.completed`, `.failed`, `.canceled`."""

    type: str
    session_id: str
    turn_id: str
    phase: str = ""  # activity words: working, waiting_approval, waiting_input, settled
    outcome: str = ""
    error: JsonObject | None = None
    file_changes: JsonObject | None = None  # the Turn's merged file changes after this event
    completed_command: JsonObject | None = None
    lineage: Lineage | None = None


class RootTurnEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`root_provider_turn.started`, `.checkpoint`, `.completed`."""

    type: str
    session_id: str
    turn_id: str
    provider_turn_id: str = ""
    outcome: str = ""  # completed, failed, canceled, interrupted
    phase: str = ""  # working, settled
    error: JsonObject | None = None
    origin: str = ""  # `goal_continuation` or `provider_initiated` where the event proves a new Turn
    resume_checkpoint: JsonObject | None = None


class MessageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`message.appended`, `message.created`, `session.audit`: a message as a whole, or text added to it.

    With `delta` non-empty the text is appended to `payload.text` and `payload.content`; `payload` then holds only
    members of a message that does not exist yet.
    """

    type: str
    session_id: str
    turn_id: str
    message_id: str
    role: str = "assistant"
    kind: str = "text"
    status: str = ""
    payload: JsonObject = msgspec.field(default_factory=dict)
    semantics: JsonObject | None = None
    delta: str = ""
    lineage: Lineage | None = None


class CallEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`call.started`, `call.completed`, `call.failed`; message id is `toolcall:<call_id>`.

    `live` marks output and progress updates: they reuse `call.started` and make no observation (T-C6).
    """

    type: str
    session_id: str
    turn_id: str
    call_id: str
    status: str  # running, waiting_approval, waiting_input, completed, failed, canceled
    payload: JsonObject = msgspec.field(default_factory=dict)  # name, toolName, callType, input, output, error …
    output_delta: str = ""  # live output, appended to payload.output.stdout (bounded, provider-adapters §3.2)
    live: bool = False
    lineage: Lineage | None = None


class InteractionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`interaction.requested`, `interaction.superseded`."""

    type: str
    session_id: str
    turn_id: str
    request_id: str
    kind: str = "approval"
    tool_name: str = ""
    input: JsonObject = msgspec.field(default_factory=dict)
    metadata: JsonObject = msgspec.field(default_factory=dict)
    lineage: Lineage | None = None


class GoalEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`goal.control_applied`, `goal.reconcile_required`: evidence for a durable goal operation."""

    type: str
    session_id: str
    operation_id: str = ""
    revision: int = 0
    action: str = ""
    goal: JsonObject | None = None
    error: str = ""


AgentEvent = SessionEvent | TurnEvent | RootTurnEvent | MessageEvent | CallEvent | InteractionEvent | GoalEvent
