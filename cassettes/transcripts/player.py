"""A provider process that only knows a transcript: it answers the adapter and plays each turn at its recorded times."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from cassettes.core.errors import InputRejected
from cassettes.session.ports import Chunk, Launch, Receiver
from cassettes.transcripts.portable import Portable
from cassettes.transcripts.schedule import AFTER, Schedule
from cassettes.transcripts.script import (
    CallEnd,
    CallStart,
    ChildEnd,
    ChildStart,
    Compaction,
    Guide,
    Notice,
    Script,
    Step,
    Text,
    Turn,
)

JsonObject = dict[str, Any]


class TranscriptTransport:
    """Launches the one process of a transcript."""

    def __init__(self, script: Script, schedule: Schedule, portable: Portable) -> None:
        self._script = script
        self._schedule = schedule
        self._portable = portable
        self.connection: TranscriptConnection | None = None

    def launch(self, launch: Launch, receiver: Receiver) -> TranscriptConnection:
        """Open the connection; a transcript is one process."""
        from cassettes.transcripts.acp_player import AcpConnection
        from cassettes.transcripts.claude_player import ClaudeConnection
        from cassettes.transcripts.codex_player import CodexConnection

        if self.connection is not None and not self.connection.closed:
            raise InputRejected("the transcript is being played already", code="transcript_second_launch")
        kinds: dict[str, type[TranscriptConnection]] = {
            "codex": CodexConnection,
            "claude-code": ClaudeConnection,
            "acp": AcpConnection,
        }
        kind = kinds[self._script.provider]
        self.connection = kind(self._script, self._schedule, self._portable, receiver)
        return self.connection


class TranscriptConnection(ABC):
    """One connection. `send` takes requests; answers and frames come from the schedule, never inside of `send`."""

    connection_id = "transcript"
    capture_origin = "process-start"
    protocol_version = 0

    def __init__(self, script: Script, schedule: Schedule, portable: Portable, receiver: Receiver) -> None:
        self.script = script
        self.portable = portable
        self.closed = False
        self.turn: Turn | None = None  # the one being played
        self.turn_id = ""
        self._schedule = schedule
        self._receiver = receiver
        self._next = 0
        self._rest = b""

    # ------------------------------------------------------------------ the transport's side

    def send(self, data: bytes) -> None:
        """Take bytes of the adapter; whole messages are answered at the same virtual time."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                message = json.loads(line)
                self._schedule.at(self._schedule.now(), lambda message=message: self.answer(message))  # type: ignore[misc]

    def close(self) -> None:
        """Stop: nothing is played any more."""
        self.closed = True

    def write(self, *messages: JsonObject) -> None:
        """One chunk of stdout."""
        if self.closed or not messages:
            return
        data = b"".join(self.encode(message) for message in messages)
        self._receiver(Chunk(kind="stdout", data=data))

    # ------------------------------------------------------------------ playing

    def begin(self, turn_id: str) -> Turn:
        """Start the next turn of the script: everything it holds is planned at its recorded time."""
        if self._next >= len(self.script.turns):
            raise InputRejected("the session asks for more turns than the transcript has", code="transcript_exhausted")
        turn = self.script.turns[self._next]
        number = self._next
        self._next += 1
        self.turn, self.turn_id = turn, turn_id
        ends = {step.call_id: step for step in turn.steps if isinstance(step, CallEnd)}
        self._schedule.at(self._schedule.now(), lambda: self.write(*self.opening(turn)))
        for step in turn.steps:
            if isinstance(step, Compaction):
                self._schedule.at(step.started, lambda step=step: self.play(turn, self.compaction_began(step)))  # type: ignore[misc]
            self._schedule.at(step.at, lambda step=step: self.play(turn, self.frames(step, ends)))  # type: ignore[misc]
        rank = AFTER if turn.outcome == "interrupted" else 0
        self._schedule.at(turn.ended, lambda: self.end(number), rank)
        return turn

    def play(self, turn: Turn, messages: list[JsonObject]) -> None:
        """Write frames of `turn`, unless it was ended before."""
        if self.turn is turn:
            self.write(*messages)

    def end(self, number: int = -1) -> None:
        """End the turn that is being played (the one with `number`), once."""
        turn = self.turn
        if turn is None or (number >= 0 and self.script.turns[number] is not turn):
            return
        messages = self.closing(turn)
        self.turn = None
        self.write(*messages)

    def frames(self, step: Step, ends: dict[str, CallEnd]) -> list[JsonObject]:
        """The messages of one step."""
        if isinstance(step, Text):
            return self.text(step)
        if isinstance(step, CallStart):
            return self.call_started(step, ends.get(step.call_id))
        if isinstance(step, CallEnd):
            return self.call_ended(step)
        if isinstance(step, Notice):
            return self.notice(step)
        if isinstance(step, Compaction):
            return self.compaction_ended(step)
        if isinstance(step, ChildStart):
            return self.child_started(step)
        if isinstance(step, ChildEnd):
            return self.child_ended(step)
        assert isinstance(step, Guide)
        return []  # the person's; the adapter sends it to us

    # ------------------------------------------------------------------ the protocol

    @abstractmethod
    def encode(self, message: JsonObject) -> bytes: ...

    @abstractmethod
    def answer(self, message: JsonObject) -> None:
        """Answer one request of the adapter."""

    @abstractmethod
    def opening(self, turn: Turn) -> list[JsonObject]: ...

    @abstractmethod
    def closing(self, turn: Turn) -> list[JsonObject]: ...

    @abstractmethod
    def text(self, step: Text) -> list[JsonObject]: ...

    @abstractmethod
    def call_started(self, step: CallStart, end: CallEnd | None) -> list[JsonObject]: ...

    @abstractmethod
    def call_ended(self, step: CallEnd) -> list[JsonObject]: ...

    @abstractmethod
    def notice(self, step: Notice) -> list[JsonObject]: ...

    @abstractmethod
    def compaction_began(self, step: Compaction) -> list[JsonObject]: ...

    @abstractmethod
    def compaction_ended(self, step: Compaction) -> list[JsonObject]: ...

    @abstractmethod
    def child_started(self, step: ChildStart) -> list[JsonObject]: ...

    @abstractmethod
    def child_ended(self, step: ChildEnd) -> list[JsonObject]: ...
