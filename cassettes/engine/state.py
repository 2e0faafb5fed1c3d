"""State of the activity engine (replay-runtime §2.2). Times are epoch milliseconds."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cassettes.engine.contract import scoped_key
from cassettes.engine.ports import Command, CommandResult

JsonObject = dict[str, Any]
BLOCKING_AVAILABILITY = frozenset(
    {
        "agent_capability_checking",
        "agent_capability_unavailable",
        "transport_reconnecting",
        "transport_unavailable",
        "agent_sharing_revoked",
    }
)


class SessionView(msgspec.Struct):
    """A canonical Session, as far as the engine needs it."""

    id: str
    active_turn_id: str = ""
    settings: JsonObject = msgspec.field(default_factory=dict)
    guidance: bool = True  # the provider takes guidance into a running Turn
    interrupt: bool = True
    availability: str = ""  # one of BLOCKING_AVAILABILITY, or empty


class TurnView(msgspec.Struct):
    """A canonical Turn."""

    id: str
    phase: str
    outcome: str = ""

    @property
    def settled(self) -> bool:
        return self.phase == "settled"


class InteractionView(msgspec.Struct):
    """A canonical Interaction, and the person's attempt to answer it."""

    session_id: str
    turn_id: str
    request_id: str
    status: str
    response: Literal["", "responding", "failed", "unknown"] = ""
    answer: JsonObject = msgspec.field(default_factory=dict)


class QueuedPrompt(msgspec.Struct):
    """A prompt that waits to be sent, or is being sent."""

    id: str
    client_submit_id: str
    body: JsonObject  # content, runtimeContent, displayPrompt, capabilityRefs, submitDiagnostics
    routing: str = ""
    guidance: bool = False
    target_turn_id: str = ""
    settings_patch: JsonObject | None = None


class InFlight(msgspec.Struct):
    """The prompt that is on its way."""

    command_id: str
    prompt: QueuedPrompt
    stage: Literal["preparingSettings", "sending"] = "sending"


class QueueRecord(msgspec.Struct):
    """The prompt queue of one session (replay-runtime §2.5)."""

    prompts: list[QueuedPrompt] = msgspec.field(default_factory=list)
    in_flight: InFlight | None = None
    uncertain: InFlight | None = None
    reconcile_id: str = ""
    barrier_turn_id: str = ""
    failed_prompt_id: str = ""
    failure_message: str = ""
    send_next_prompt_id: str = ""
    suspended: bool = False

    @property
    def idle(self) -> bool:
        """Nothing is in it: the record may go."""
        return not (self.prompts or self.in_flight or self.uncertain or self.barrier_turn_id)


class SubmitRecord(msgspec.Struct):
    """A submit that was asked for (replay-runtime §2.6)."""

    id: str
    session_id: str
    status: Literal["requested", "accepted", "confirmed", "uncertain", "failed"] = "requested"
    turn_id: str = ""
    expires_at: int = 0
    window: int = 0


class ActivationRecord(msgspec.Struct):
    """An activation that was asked for (replay-runtime §2.7)."""

    request_id: str
    session_id: str
    command_id: str
    status: Literal["requested", "confirmed", "canceled", "uncertain", "failed"] = "requested"


class CancelState(msgspec.Struct):
    """The cancel of one session (replay-runtime §2.8)."""

    status: Literal["awaitingTurn", "requested", "accepted", "failed", "unknown"]
    command_id: str
    turn_id: str = ""
    submit_id: str = ""
    timeout_ms: int = 30_000


class SettingsUpdate(msgspec.Struct):
    """One settings request (replay-runtime §2.9)."""

    command_id: str
    settings: JsonObject
    kind: Literal["user", "activation", "promptPrecondition"] = "user"
    timeout_ms: int = 30_000


class SettingsState(msgspec.Struct):
    """Single flight of settings with an ordered backlog."""

    status: Literal["idle", "inFlight", "waitingForPromptSend", "waitingForRuntime", "unknown", "failed"] = "idle"
    current: SettingsUpdate | None = None
    backlog: list[SettingsUpdate] = msgspec.field(default_factory=list)


class GoalState(msgspec.Struct):
    """The presentation of a goal and of its last control (replay-runtime §2.12)."""

    status: Literal["idle", "pending", "accepted", "succeeded", "failed", "unknown"] = "idle"
    goal: JsonObject | None = None
    command_id: str = ""


class PlanDecision(msgspec.Struct):
    """A decision on a plan that is on its way (replay-runtime §2.11)."""

    idempotency_key: str
    status: Literal["requested", "failed", "unknown"] = "requested"
    operation_id: str = ""


class Expiry(msgspec.Struct, frozen=True):
    """A deadline; `intent` is dispatched when it has come."""

    due: int
    intent: JsonObject


class Running(msgspec.Struct):
    """A command that has not come to its end."""

    command: Command
    due: int  # 0: no limit


class EngineState(msgspec.Struct):
    """Everything the engine remembers."""

    workspace_id: str
    sessions: dict[str, SessionView] = msgspec.field(default_factory=dict)
    turns: dict[str, TurnView] = msgspec.field(default_factory=dict)  # by scoped key
    interactions: dict[str, InteractionView] = msgspec.field(default_factory=dict)  # by interaction key
    deleted: set[str] = msgspec.field(default_factory=set)
    queues: dict[str, QueueRecord] = msgspec.field(default_factory=dict)
    submits: dict[str, SubmitRecord] = msgspec.field(default_factory=dict)
    activations: dict[str, ActivationRecord] = msgspec.field(default_factory=dict)
    cancels: dict[str, CancelState] = msgspec.field(default_factory=dict)
    settings: dict[str, SettingsState] = msgspec.field(default_factory=dict)
    goals: dict[str, GoalState] = msgspec.field(default_factory=dict)
    plans: dict[str, PlanDecision] = msgspec.field(default_factory=dict)
    dismissed_plans: set[tuple[str, str]] = msgspec.field(default_factory=set)
    expiries: dict[str, Expiry] = msgspec.field(default_factory=dict)
    sends: int = 0

    def turn(self, session_id: str, turn_id: str) -> TurnView | None:
        return self.turns.get(scoped_key(session_id, turn_id))

    def active_turn(self, session_id: str) -> TurnView | None:
        """The Turn that is going on, if it is not settled."""
        session = self.sessions.get(session_id)
        if session is None or not session.active_turn_id:
            return None
        turn = self.turn(session_id, session.active_turn_id)
        if turn is None:
            return TurnView(session.active_turn_id, "submitted")
        return None if turn.settled else turn

    def pending_interactions(self, session_id: str) -> list[InteractionView]:
        return [one for one in self.interactions.values() if one.session_id == session_id and one.status == "pending"]


class Outcome(msgspec.Struct):
    """What one reduction wants: commands, and intents that go before everything that waits."""

    commands: list[Command] = msgspec.field(default_factory=list)
    follow_ups: list[JsonObject] = msgspec.field(default_factory=list)
    no_drain: bool = False


def availability(state: EngineState, session_id: str) -> tuple[str, str]:
    """Whether a prompt may be sent: (`missing` | `blocked` | `available`, reason). First match wins (§2.5)."""
    session = state.sessions.get(session_id)
    if session is None:
        return "missing", ""
    if session.availability in BLOCKING_AVAILABILITY:
        return "blocked", session.availability
    if state.pending_interactions(session_id):
        return "blocked", "waiting"
    if state.active_turn(session_id) is not None:
        return "blocked", "active_turn"
    return "available", ""


def runtime_blocked(state: EngineState, session_id: str) -> bool:
    """Is the session's runtime out of reach?"""
    session = state.sessions.get(session_id)
    return session is not None and session.availability in BLOCKING_AVAILABILITY


def succeeded(result: CommandResult) -> bool:
    return result.outcome == "succeeded"
