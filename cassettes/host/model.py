"""Rows of the canonical state and what one commit changed.

Names and values are those of replay-state §3. Times are epoch milliseconds of the runtime's own clock.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

JsonObject = dict[str, Any]


class SessionRow(msgspec.Struct, kw_only=True, rename="camel"):
    """One agent session, root or child (replay-state §3.2)."""

    id: str
    kind: Literal["root", "child"]
    root_session_id: str = ""
    root_turn_id: str = ""
    parent_session_id: str = ""
    parent_turn_id: str = ""
    parent_tool_call_id: str = ""
    origin: str = "WORKSPACE_AGENT_SESSION_ORIGIN_RUNTIME"
    agent_target_id: str
    provider: str
    provider_session_id: str = ""
    model: str = ""
    settings: JsonObject = msgspec.field(default_factory=dict)
    provider_resume_checkpoint: JsonObject | None = None
    cwd: str = ""
    rail_section_kind: str = "conversations"
    rail_project_path: str = ""
    rail_section_key: str = "conversations"
    title: str = ""
    active_turn_id: str = ""
    pinned: bool = False
    message_version: int = 0
    created_at_ms: int = 0
    updated_at_ms: int = 0
    ended_at_ms: int = 0

    @property
    def root_id(self) -> str:
        """Id of the root of this session's graph."""
        return self.root_session_id or self.id


class TurnRow(msgspec.Struct, kw_only=True, rename="camel"):
    """One Turn (replay-state §3.4)."""

    session_id: str
    id: str
    seq: int
    phase: Literal["submitted", "running", "waiting", "settling", "settled"]
    outcome: str = ""
    origin: str = "user_prompt"
    capability_refs: list[JsonObject] = msgspec.field(default_factory=list)
    error: JsonObject | None = None
    file_changes: JsonObject | None = None
    completed_command: JsonObject | None = None
    source_goal_operation_id: str = ""
    source_goal_revision: int = 0
    source_goal_repair_epoch: int = 0
    root_provider_turn_id: str = ""
    provider_phase: str = ""
    provider_outcome: str = ""
    started_at_ms: int = 0
    settled_at_ms: int = 0
    updated_at_ms: int = 0


class MessageRow(msgspec.Struct, kw_only=True, rename="camel"):
    """One message or tool call (replay-state §3.5). `version` orders messages by last change."""

    session_id: str
    id: str
    turn_id: str = ""
    role: str
    kind: str
    status: str = ""
    semantics: JsonObject | None = None
    payload: JsonObject = msgspec.field(default_factory=dict)
    version: int = 0
    created_seq: int = 0
    created_at_ms: int = 0
    updated_at_ms: int = 0


class InteractionRow(msgspec.Struct, kw_only=True, rename="camel"):
    """One approval, question or plan (replay-state §3.6)."""

    session_id: str
    turn_id: str
    request_id: str
    kind: Literal["approval", "question", "plan"]
    status: Literal["pending", "answered", "superseded"]
    tool_name: str = ""
    input: JsonObject = msgspec.field(default_factory=dict)
    output: JsonObject = msgspec.field(default_factory=dict)
    metadata: JsonObject = msgspec.field(default_factory=dict)
    created_at_ms: int = 0
    updated_at_ms: int = 0


class GoalRow(msgspec.Struct, kw_only=True, rename="camel"):
    """The goal of a session (replay-state §3.7)."""

    session_id: str
    desired: JsonObject = msgspec.field(default_factory=dict)
    observed: JsonObject = msgspec.field(default_factory=dict)
    revision: int = 0
    tombstoned: bool = False
    sync_status: str = "pending"
    pending_operation_id: str = ""
    last_evidence: JsonObject = msgspec.field(default_factory=dict)
    last_error: str = ""


class Mutation(msgspec.Struct, frozen=True, kw_only=True):
    """One changed entity. `value` is the row after the change.

    Rows are shared, never copied: who keeps one beyond the commit's handling must copy it. `appended` holds the
    added text where the only change of a message is text at the end of `payload.text`.
    """

    entity: Literal["session", "turn", "message", "interaction", "goal"]
    key: tuple[str, ...]
    change: Literal["insert", "update", "delete"]
    value: SessionRow | TurnRow | MessageRow | InteractionRow | GoalRow
    appended: str = ""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """What one canonical transaction did; `txn_id` is empty where nothing changed."""

    txn_id: str
    cause: Literal["restore", "activity", "provider", "operation", "recovery"]
    cause_ref: str = ""
    mutations: tuple[Mutation, ...] = ()
