"""The engine in any situation: random intents, results and times, and what must hold whatever happens.

A model follows each prompt from its submit to its end; the engine may never lose one, send one twice, or send two at
once.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cassettes.engine.contract import REPLAYABLE_EFFECTS
from cassettes.engine.engine import ActivityEngine
from cassettes.engine.ports import Command, CommandResult

JsonObject = dict[str, Any]
SESSION = "session-1"
OUTCOMES = st.sampled_from(["succeeded", "failed", "timedOut"])
ROUTES = st.sampled_from(["auto", "auto", "auto", "send_now", "immediate"])


class EngineMachine(RuleBasedStateMachine):
    """One session, its person and its host."""

    @initialize(guidance=st.booleans(), interrupt=st.booleans())
    def begin(self, guidance: bool, interrupt: bool) -> None:
        self.now = 1_000_000
        self.engine = ActivityEngine("workspace", lambda: self.now)
        self.capabilities = {"activeTurnGuidance": guidance, "interrupt": interrupt}
        self.open: dict[str, Command] = {}
        self.closed: set[str] = set()
        self.submitted: list[str] = []
        self.sends: list[str] = []
        self.removed: set[str] = set()
        self.turns = 0
        self.wishes = 0
        self.active = ""
        self.question = ""
        self.tell_session()

    # ------------------------------------------------------------------ helpers
    def take(self, commands: list[Command]) -> None:
        """Commands that the engine gave out."""
        for command in commands:
            assert command.command_id not in self.open, "a command id is used once at a time"
            assert command.command_id not in self.closed, "and never again"
            self.open[command.command_id] = command
            if command.type == "queue/sendPrompt":
                self.sends.append(str(command.payload["promptId"]))

    def do(self, kind: str, **members: Any) -> None:
        """An intent about the session."""
        self.take(self.engine.dispatch({"type": kind, "agentSessionId": SESSION, **members}))

    def wish(self, what: str) -> str:
        """A fresh command id."""
        self.wishes += 1
        return f"{what}-{self.wishes}"

    def tell_session(self) -> None:
        row = {"id": SESSION, "activeTurnId": self.active, "capabilities": self.capabilities}
        self.take(self.engine.dispatch({"type": "session/upserted", "session": row}))

    # ------------------------------------------------------------------ the person
    @rule(routing=ROUTES, patch=st.sampled_from([None, {"model": "a"}]))
    def submit(self, routing: str, patch: JsonObject | None) -> None:
        name = f"prompt-{len(self.submitted)}"
        self.submitted.append(name)
        content = [{"type": "text", "text": name}]
        self.do("submit/requested", clientSubmitId=name, routing=routing, content=content, requiredSettingsPatch=patch)

    @precondition(lambda self: self.submitted)
    @rule(data=st.data())
    def submit_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.submitted))
        self.do("submit/requested", clientSubmitId=name, routing="auto", content=[{"type": "text", "text": "x"}])

    @precondition(lambda self: self.submitted)
    @rule(data=st.data(), kind=st.sampled_from(["queue/removed", "submit/canceled"]))
    def remove(self, data: st.DataObject, kind: str) -> None:
        name = data.draw(st.sampled_from(self.submitted))
        waiting = {prompt["id"] for prompt in self.engine.queue_view(SESSION)["prompts"]}
        member = "promptId" if kind == "queue/removed" else "clientSubmitId"
        self.do(kind, **{member: name})
        still = {prompt["id"] for prompt in self.engine.queue_view(SESSION)["prompts"]}
        if name in waiting and name not in still:
            self.removed.add(name)

    @rule(kind=st.sampled_from(["queue/suspended", "queue/resumed"]))
    def hold(self, kind: str) -> None:
        self.do(kind)

    @precondition(lambda self: self.engine.queue_view(SESSION)["prompts"])
    @rule(data=st.data())
    def send_now(self, data: st.DataObject) -> None:
        waiting = [prompt["id"] for prompt in self.engine.queue_view(SESSION)["prompts"]]
        chosen = data.draw(st.sampled_from(waiting))
        self.do("queue/sendNowRequested", promptId=chosen, cancelCommandId=self.wish("now"))

    @rule(kind=st.sampled_from(["session/cancelRequested", "session/stopRequested"]))
    def cancel(self, kind: str) -> None:
        self.do(kind, commandId=self.wish("cancel"))

    @rule(model=st.sampled_from(["a", "b"]))
    def change_settings(self, model: str) -> None:
        self.do("session/settingsUpdateRequested", commandId=self.wish("set"), settings={"model": model})

    @precondition(lambda self: self.question)
    @rule()
    def answer(self) -> None:
        members = {"turnId": self.active or "turn", "requestId": self.question, "action": "accept"}
        self.do("interaction/responseRequested", commandId=self.wish("answer"), **members)

    # ------------------------------------------------------------------ the host
    @precondition(lambda self: not self.active)
    @rule()
    def turn_begins(self) -> None:
        self.turns += 1
        self.active = f"turn-{self.turns}"
        self.tell_session()
        self.do("turn/upserted", turn={"id": self.active, "phase": "running"})

    @precondition(lambda self: self.active)
    @rule(outcome=st.sampled_from(["completed", "failed", "canceled", "interrupted"]))
    def turn_ends(self, outcome: str) -> None:
        ended, self.active = self.active, ""
        self.tell_session()
        self.do("turn/upserted", turn={"id": ended, "phase": "settled", "outcome": outcome})

    @precondition(lambda self: not self.question)
    @rule()
    def question_comes(self) -> None:
        self.question = self.wish("request")
        asked = {"turnId": self.active or "turn", "requestId": self.question, "status": "pending"}
        self.do("interaction/upserted", interaction=asked)
        self.asked_in = self.active or "turn"

    @precondition(lambda self: self.question)
    @rule(status=st.sampled_from(["answered", "superseded"]))
    def question_goes(self, status: str) -> None:
        gone = {"turnId": self.asked_in, "requestId": self.question, "status": status}
        self.question = ""
        self.do("interaction/upserted", interaction=gone)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), outcome=OUTCOMES, names_turn=st.booleans())
    def command_ends(self, data: st.DataObject, outcome: str, names_turn: bool) -> None:
        command = self.open.pop(data.draw(st.sampled_from(sorted(self.open))))
        self.closed.add(command.command_id)
        result: JsonObject = {"agentSessionId": SESSION, "status": "turn_canceled", "canceled": True}
        if command.type == "queue/sendPrompt" and names_turn:
            self.turns += 1
            name = f"turn-{self.turns}"
            result = {"turn": {"id": name}, "session": {"agentSessionId": SESSION}, "turnId": name}
            if outcome == "succeeded" and not self.active:
                self.active = name
                self.tell_session()
                self.do("turn/upserted", turn={"id": name, "phase": "running"})
        told = CommandResult(outcome=outcome, result=result if outcome == "succeeded" else {}, error_code="x")
        self.take(self.engine.settle(command.command_id, told))
        assert self.engine.settle(command.command_id, told) == [], "a command ends once"

    @rule(milliseconds=st.sampled_from([0, 1, 1_000, 30_000, 90_000, 120_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        late = {name for name, one in self.open.items() if one.timeout_ms}
        commands = self.engine.expire()
        due = self.engine.next_expiry()
        assert due is None or due > self.now, "everything that was due has taken effect"
        if milliseconds >= 120_000:
            for name in late:
                self.open.pop(name, None)
                self.closed.add(name)
        self.take(commands)

    # ------------------------------------------------------------------ what always holds
    @invariant()
    def no_prompt_is_sent_twice_at_once(self) -> None:
        if not hasattr(self, "engine"):
            return
        moving = [one.payload["promptId"] for one in self.open.values() if one.type == "queue/sendPrompt"]
        assert len(moving) == len(set(moving))

    @invariant()
    def a_removed_prompt_is_never_sent(self) -> None:
        if hasattr(self, "engine"):
            waiting = {prompt["id"] for prompt in self.engine.queue_view(SESSION)["prompts"]}
            assert not waiting & self.removed

    @invariant()
    def every_command_is_of_a_known_kind_and_of_this_session(self) -> None:
        if hasattr(self, "engine"):
            known = REPLAYABLE_EFFECTS | {"session/reconcile", "engine/reconcileWorkspace"}
            assert {one.type for one in self.open.values()} <= known
            assert {one.agent_session_id for one in self.open.values()} <= {SESSION}

    @invariant()
    def what_waits_was_submitted_and_waits_once(self) -> None:
        if hasattr(self, "engine"):
            waiting = [prompt["id"] for prompt in self.engine.queue_view(SESSION)["prompts"]]
            assert len(waiting) == len(set(waiting))
            assert set(waiting) <= set(self.submitted)

    @invariant()
    def idle_means_no_turn_and_no_question(self) -> None:
        if hasattr(self, "engine"):
            assert self.engine.is_idle(SESSION) == (not self.active and not self.question)


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
