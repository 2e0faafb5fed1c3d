"""What a session stands on (a transport) and who may watch it (observers)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from cassettes.host.events import AgentEvent
from cassettes.host.model import Commit

if TYPE_CHECKING:
    from cassettes.engine.engine import Command, CommandResult

JsonObject = dict[str, Any]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A provider process that a session asks for."""

    session_id: str
    root_session_id: str
    provider: str  # registered provider id
    cwd: str
    environment: dict[str, str] = msgspec.field(default_factory=dict)


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """What a process wrote. Chunk borders are the process's own, not message borders.

    `chunk_seq` is the position on the tape; 0 where nothing is recorded.
    """

    kind: Literal["stdout", "stderr", "exit"]
    data: bytes = b""
    chunk_seq: int = 0
    message: str = ""
    exit_code: int | None = None


Receiver = Callable[[Chunk], None]


class Connection(Protocol):
    """One open connection to a provider process."""

    @property
    def connection_id(self) -> str: ...

    @property
    def capture_origin(self) -> str:
        """`process-start` or `attached-live-connection`."""
        ...

    @property
    def protocol_version(self) -> int:
        """Envelope version that the other end speaks; 0 where it does not matter or is not known."""
        ...

    def send(self, data: bytes) -> None:
        """Hand bytes over; never blocks, never calls the receiver before it returned."""
        ...

    def close(self) -> None: ...


class Transport(Protocol):
    """Opens connections: a live process, a transcript that plays one, or a tape."""

    def launch(self, launch: Launch, receiver: Receiver) -> Connection: ...


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A Provider Input Unit (provider-tape §11.1)."""

    connection_id: str
    chunk_seq: int
    unit_index: int
    kind: Literal["protocol-message", "mapped-stderr-message", "process-exit"]
    message: JsonObject | None = None
    exit_code: int | None = None
    text: str = ""


class UnitEvent(msgspec.Struct, frozen=True):
    """An event that a unit caused; `index` counts every event of the unit from 1."""

    index: int
    event: AgentEvent


class SessionObserver(Protocol):
    """Watches a session. Exceptions of an observer are the observer's; they never change what the session does."""

    def on_intent(self, intent: JsonObject) -> None:
        """An intent was accepted by the engine, before its reduction."""
        ...

    def on_command(self, command: Command) -> None:
        """An external command, before it is carried out."""
        ...

    def on_command_result(self, command: Command, result: CommandResult) -> None: ...

    def on_commit(self, commit: Commit) -> None:
        """Every canonical commit that changed something, in order."""
        ...

    def on_unit(self, unit: Unit, events: Sequence[UnitEvent], commit: Commit) -> None:
        """A unit was handled: its events are committed (after `on_commit` of that commit)."""
        ...
