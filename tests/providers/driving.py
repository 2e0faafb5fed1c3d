"""An adapter at work: what it was told, and what it wanted done."""

from __future__ import annotations

from typing import Any

from cassettes.host.events import AgentEvent
from cassettes.providers import registry
from cassettes.providers.ports import Answer, Emit, Fail, LaunchContext, Prompt, Send, Settle, Steps
from cassettes.session.ids import SeededIds

JsonObject = dict[str, Any]

SESSION = "session-1"


class Driven:
    """One connection of a provider. `sent`, `events` and `settled` hold what the last call wanted."""

    def __init__(self, provider_id: str) -> None:
        self.adapter = registry.new_adapter(provider_id, SeededIds("test"))
        self.sent: list[JsonObject] = []
        self.events: list[AgentEvent] = []
        self.settled: list[Settle] = []

    def take(self, steps: Steps) -> None:
        """Sort the steps of a call."""
        assert not [step for step in steps if isinstance(step, Fail)]
        self.sent = [step.message for step in steps if isinstance(step, Send)]
        self.events = [step.event for step in steps if isinstance(step, Emit)]
        self.settled = [step for step in steps if isinstance(step, Settle)]

    def start(self, **launch: Any) -> None:
        """Open the connection."""
        context = LaunchContext(connection_id="connection-1", session_id=SESSION, cwd="/project", **launch)
        self.take(self.adapter.start(context, "start"))

    def receive(self, **message: Any) -> None:
        """One inbound message."""
        self.take(self.adapter.receive(message))

    def prompt(self, turn_id: str, text: str, *, guidance: bool = False) -> None:
        """A person's prompt."""
        blocks = [{"type": "text", "text": text}]
        prompt = Prompt(session_id=SESSION, turn_id=turn_id, content=blocks, guidance=guidance, client_submit_id="s")
        self.take(self.adapter.send_prompt(prompt, f"prompt:{turn_id}"))

    def cancel(self, turn_id: str) -> None:
        """A person's interrupt."""
        self.take(self.adapter.cancel_turn(SESSION, turn_id, f"cancel:{turn_id}"))

    def answer(self, turn_id: str, request_id: str, **answer: Any) -> None:
        """A person's answer."""
        told = Answer(session_id=SESSION, turn_id=turn_id, request_id=request_id, **answer)
        self.take(self.adapter.answer(told, f"answer:{request_id}"))

    def exit(self, code: int, message: str = "") -> None:
        """The process ended."""
        self.take(self.adapter.exited(code, message))

    @property
    def kinds(self) -> list[str]:
        """The types of the events."""
        return [event.type for event in self.events]

    @property
    def outcomes(self) -> dict[str, str]:
        """What was settled, and how."""
        return {step.token: step.outcome for step in self.settled}
