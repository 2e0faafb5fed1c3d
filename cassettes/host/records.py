"""Rows that only the host needs, and what callers give it to begin something."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

JsonObject = dict[str, Any]

OperationKind = Literal[
    "interactive_response",
    "cancel_turn",
    "plan_decision",
    "edit_retry",
    "goal_set",
    "goal_pause",
    "goal_resume",
    "goal_clear",
    "goal_reconcile",
]
OPEN_OPERATION = frozenset({"prepared", "dispatched"})


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A root session to create (replay-state §3.2)."""

    id: str
    agent_target_id: str
    provider: str
    kind: Literal["root"] = "root"
    provider_session_id: str = ""
    origin: str = "WORKSPACE_AGENT_SESSION_ORIGIN_RUNTIME"
    settings: JsonObject = msgspec.field(default_factory=dict)
    model: str = ""
    cwd: str = ""
    title: str = ""
    rail_section_kind: str = "conversations"
    rail_project_path: str = ""
    rail_section_key: str = "conversations"
    pinned: bool = False


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt: it opens the Turn `turn_id`, or with `guidance` speaks into that running Turn."""

    session_id: str
    turn_id: str
    client_submit_id: str
    content: list[JsonObject] = msgspec.field(default_factory=list)
    display_prompt: str = ""
    guidance: bool = False
    origin: str = "user_prompt"
    capability_refs: list[JsonObject] = msgspec.field(default_factory=list)
    source_goal_operation_id: str = ""
    source_goal_revision: int = 0
    source_goal_repair_epoch: int = 0


class NewOperation(msgspec.Struct, frozen=True, kw_only=True):
    """A durable operation to begin (replay-state §3.9). `payload` is its content, kept as it is."""

    id: str
    session_id: str
    kind: OperationKind
    turn_id: str = ""
    request_id: str = ""
    payload: JsonObject = msgspec.field(default_factory=dict)


class OperationRow(msgspec.Struct, kw_only=True):
    """An operation and how far it is; only its effect is canonical."""

    id: str
    session_id: str
    kind: OperationKind
    state: Literal["prepared", "dispatched", "completed", "failed", "superseded"] = "prepared"
    turn_id: str = ""
    request_id: str = ""
    payload: JsonObject = msgspec.field(default_factory=dict)
    result: JsonObject = msgspec.field(default_factory=dict)
    error: str = ""


class SubmitRow(msgspec.Struct, kw_only=True):
    """A prompt on its way to the provider."""

    session_id: str
    client_submit_id: str
    turn_id: str
    message_id: str
    state: Literal["prepared", "accepted", "rejected"] = "prepared"
    guidance: bool = False
