"""What a provider adapter is: a protocol state machine without I/O.

An adapter never blocks, reads no clock and opens nothing. Every call returns the *steps* it wants done, in
order: bytes to send, events to commit, requests it has settled. So live recording, transcript import and replay
run the same code, and every run is deterministic.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from cassettes.host.events import AgentEvent

JsonObject = dict[str, Any]


class Send(msgspec.Struct, frozen=True):
    """Write one protocol message to the connection."""

    message: JsonObject


class Emit(msgspec.Struct, frozen=True):
    """Commit one event."""

    event: AgentEvent


class Settle(msgspec.Struct, frozen=True, kw_only=True):
    """The command known by `token` is done. Exactly one for each token that was given to the adapter."""

    token: str
    outcome: str = "succeeded"  # succeeded | failed
    error_code: str = ""
    error_reason: str = ""
    error_message: str = ""
    result: JsonObject = msgspec.field(default_factory=dict)


class Fail(msgspec.Struct, frozen=True):
    """The connection broke its protocol; it must be closed. `code` is stable."""

    code: str
    message: str


Step = Send | Emit | Settle | Fail
Steps = list[Step]


class LaunchContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter knows when its connection opens."""

    connection_id: str
    session_id: str
    provider_session_id: str = ""  # non-empty: resume this provider session
    resume_checkpoint: JsonObject | None = None
    attached: bool = False  # `attached-live-connection`: no bootstrap (provider-adapters §2.1)
    cwd: str = ""
    settings: JsonObject = msgspec.field(default_factory=dict)
    restored: bool = False  # the session existed before this connection
    protocol_version: int = 0  # of the recorded connection (provider-adapters §1, version note); 0: the newest


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt to send: a new Turn, or guidance into the running one."""

    session_id: str
    turn_id: str
    client_submit_id: str = ""
    content: list[JsonObject] = msgspec.field(default_factory=list)  # blocks: {type: text, text} | {type: image, …}
    settings: JsonObject = msgspec.field(default_factory=dict)
    guidance: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A person's answer to an Interaction."""

    session_id: str
    turn_id: str
    request_id: str
    action: str = ""
    option_id: str = ""
    payload: JsonObject | None = None


class GoalControl(msgspec.Struct, frozen=True, kw_only=True):
    """set, pause, resume or clear the goal."""

    session_id: str
    operation_id: str
    action: str
    objective: str = ""
    revision: int = 0


class IdSource(Protocol):
    """Source of fresh identities. Long and unique; the same source gives the same sequence (replay-state T3)."""

    def new(self, kind: str) -> str: ...


class Adapter(Protocol):
    """One provider connection and the sessions that live on it."""

    def start(self, launch: LaunchContext, token: str) -> Steps:
        """The connection is open: bootstrap, or restore when attached. Settles `token` once prompts may be sent."""
        ...

    def send_prompt(self, prompt: Prompt, token: str) -> Steps:
        """Start a Turn, or steer. Settled when the provider accepted; result holds `providerTurnId` if known."""
        ...

    def cancel_turn(self, session_id: str, turn_id: str, token: str) -> Steps:
        """Interrupt. Settled when the provider's terminal event of that Turn was handled."""
        ...

    def answer(self, answer: Answer, token: str) -> Steps: ...

    def control_goal(self, control: GoalControl, token: str) -> Steps: ...

    def update_settings(self, session_id: str, settings: JsonObject, token: str) -> Steps: ...

    def receive(self, message: JsonObject) -> Steps:
        """One inbound message (= one Provider Input Unit). Unknown messages return no steps."""
        ...

    def exited(self, exit_code: int, message: str) -> Steps:
        """The process ended: open Turns fail, pending Interactions are superseded, tokens are settled."""
        ...


class Line(msgspec.Struct, frozen=True):
    """Outcome of decoding one line of stdout: a message, or nothing (blank, log line), or a fatal error."""

    message: JsonObject | None = None
    fatal: str = ""


class Codec(Protocol):
    """Bytes ↔ messages of one provider protocol."""

    def encode(self, message: JsonObject) -> bytes: ...

    def decode_line(self, line: bytes) -> Line: ...


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Declared behaviour of one provider (provider-tape §7.1). Names and fields compare trimmed, case folded."""

    id: str
    target: str
    title: str
    codec_id: str
    input_observer: str
    projection: str
    request_member: str  # `method` or `type`: its presence marks a request when matching (provider-tape §9.1)
    credential_methods: frozenset[str] = frozenset()
    optional_probes: frozenset[str] = frozenset()
    account_read_method: str = ""
    generated_request_fields: tuple[tuple[str, str, str, str], ...] = ()  # method, parameter, prefix, portable
    generated_identity_fields: frozenset[str] = frozenset()
    match_only_identity_fields: frozenset[str] = frozenset()
    environment_excluded: bool = False
    home_variables: tuple[str, ...] = ()
    session_home_folder: str = ""
    response_types: frozenset[str] = frozenset()  # sidecar: `ok`, `error`; JSON-RPC: empty
