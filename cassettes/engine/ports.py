"""What goes out of the engine and what comes back, and who may watch."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

JsonObject = dict[str, Any]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Work that the engine wants done outside. `timeout_ms` 0 means no limit."""

    type: str
    command_id: str
    correlation_id: str = ""
    agent_session_id: str = ""
    timeout_ms: int = 0
    payload: JsonObject = msgspec.field(default_factory=dict)


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended: `succeeded`, `failed` or `timedOut`. Exactly one for each command."""

    outcome: str
    error_code: str = ""
    error_reason: str = ""
    error_message: str = ""
    result: JsonObject = msgspec.field(default_factory=dict)


class EngineObserver(Protocol):
    """Hears every accepted intent before its reduction, every command before its execution, and each result."""

    def on_intent(self, intent: JsonObject) -> None: ...

    def on_command(self, command: Command) -> None: ...

    def on_command_result(self, command: Command, result: CommandResult) -> None: ...
