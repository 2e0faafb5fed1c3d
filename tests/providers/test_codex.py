"""The Codex adapter alone (provider-adapters §4): a protocol state machine without process and clock."""

from __future__ import annotations

import pytest

from tests.providers.driving import Driven

THREAD = "thread-1"


@pytest.fixture
def codex() -> Driven:
    """A thread that is open and idle."""
    driven = Driven("codex")
    driven.start()
    for _ in range(4):  # initialize, account/read, collaborationMode/list, thread/start
        request = driven.sent[-1]
        result = {"thread": {"id": THREAD}} if request["method"] == "thread/start" else {}
        driven.receive(id=request["id"], result=result)
    assert driven.outcomes == {"start": "succeeded"}
    return driven


def running(codex: Driven, turn_id: str = "turn-1", text: str = "hello") -> None:
    """A prompt, accepted, and its Turn begun."""
    codex.prompt(turn_id, text)
    codex.receive(id=codex.sent[0]["id"], result={"turn": {"id": f"provider-{turn_id}"}})
    codex.receive(method="turn/started", params={"threadId": THREAD, "turn": {"id": f"provider-{turn_id}"}})


def finish(codex: Driven, status: str = "completed") -> None:
    """The provider ends the Turn."""
    turn = {"id": "provider-turn-1", "status": status}
    codex.receive(method="turn/completed", params={"threadId": THREAD, "turn": turn})


def test_the_bootstrap_asks_in_the_order_of_the_protocol() -> None:
    driven = Driven("codex")
    driven.start()
    methods = [message["method"] for message in driven.sent]
    for _ in range(3):
        driven.receive(id=driven.sent[-1]["id"], result={})
        methods += [message["method"] for message in driven.sent]
    assert methods == ["initialize", "initialized", "account/read", "collaborationMode/list", "thread/start"]


def test_a_resumed_session_names_its_thread() -> None:
    driven = Driven("codex")
    driven.start(provider_session_id=THREAD)
    for _ in range(3):
        driven.receive(id=driven.sent[-1]["id"], result={})
    assert driven.sent[-1]["method"] == "thread/resume"
    assert driven.sent[-1]["params"]["threadId"] == THREAD


def test_a_person_who_is_not_signed_in_fails_the_start_with_a_code() -> None:
    driven = Driven("codex")
    driven.start()
    driven.receive(id=driven.sent[-1]["id"], result={})
    driven.receive(id=driven.sent[-1]["id"], result={"requiresOpenaiAuth": True, "account": None})
    assert driven.settled[0].error_code == "auth_required"


def test_a_prompt_becomes_a_turn(codex: Driven) -> None:
    codex.prompt("turn-1", "hello")
    request = codex.sent[0]
    assert request["method"] == "turn/start"
    assert request["params"]["threadId"] == THREAD
    assert request["params"]["input"][0]["text"] == "hello"
    codex.receive(id=request["id"], result={"turn": {"id": "p-1"}})
    assert codex.outcomes == {"prompt:turn-1": "succeeded"}
    codex.receive(method="turn/started", params={"threadId": THREAD, "turn": {"id": "p-1"}})
    assert codex.kinds == ["root_provider_turn.started"]


def test_a_streamed_answer_is_one_message(codex: Driven) -> None:
    running(codex)
    where = {"threadId": THREAD, "turnId": "provider-turn-1", "itemId": "m-1"}
    ids = set()
    for piece in ("Good ", "day"):
        codex.receive(method="item/agentMessage/delta", params={**where, "delta": piece})
        assert [event.delta for event in codex.events] == [piece]
        ids |= {event.message_id for event in codex.events}
    item = {"id": "m-1", "type": "agentMessage", "text": "Good day"}
    codex.receive(method="item/completed", params={**where, "item": item})
    ids |= {event.message_id for event in codex.events if hasattr(event, "message_id")}
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("status", "outcome"), [("completed", "completed"), ("failed", "failed"), ("interrupted", "canceled")]
)
def test_the_terminal_status_of_a_turn_is_its_outcome(codex: Driven, status: str, outcome: str) -> None:
    running(codex)
    finish(codex, status)
    assert codex.kinds[-1] == "root_provider_turn.completed"
    assert codex.events[-1].outcome == outcome


def test_a_turn_ends_once(codex: Driven) -> None:
    running(codex)
    finish(codex)
    finish(codex)
    assert codex.events == []


def test_an_interrupt_waits_for_the_terminal_event(codex: Driven) -> None:
    running(codex)
    codex.cancel("turn-1")
    assert codex.sent[0]["method"] == "turn/interrupt"
    assert codex.outcomes == {}
    finish(codex, "interrupted")
    assert codex.outcomes == {"cancel:turn-1": "succeeded"}


def test_an_interrupt_before_the_turn_has_a_name_is_sent_when_it_has_one(codex: Driven) -> None:
    codex.prompt("turn-1", "hello")
    codex.cancel("turn-1")
    assert codex.sent == []
    codex.receive(method="turn/started", params={"threadId": THREAD, "turn": {"id": "p-1"}})
    assert [message["method"] for message in codex.sent] == ["turn/interrupt"]


def test_guidance_names_the_turn_that_it_expects(codex: Driven) -> None:
    running(codex)
    codex.prompt("turn-1", "faster", guidance=True)
    assert codex.sent[0]["method"] == "turn/steer"
    assert codex.sent[0]["params"]["expectedTurnId"] == "provider-turn-1"


def test_guidance_without_a_turn_fails(codex: Driven) -> None:
    codex.prompt("turn-1", "faster", guidance=True)
    assert codex.settled[0].error_code == "agent.no_active_turn"


def test_an_approval_is_asked_and_answered(codex: Driven) -> None:
    running(codex)
    asked = {"threadId": THREAD, "turnId": "provider-turn-1", "itemId": "c-1", "command": "rm x", "cwd": "/project"}
    codex.receive(id=7, method="item/commandExecution/requestApproval", params=asked)
    (question,) = [event for event in codex.events if event.type == "interaction.requested"]
    codex.answer("turn-1", question.request_id, action="accept", option_id="accept")
    (reply,) = codex.sent
    assert reply["id"] == 7
    assert reply["result"]["decision"] == "accept"


def test_the_end_of_the_process_fails_what_was_open(codex: Driven) -> None:
    running(codex)
    codex.prompt("turn-1", "faster", guidance=True)
    codex.exit(1)
    assert codex.events[-1].outcome == "failed"
    assert codex.events[-1].error == {"message": "the provider ended with exit status 1", "code": "provider_exited"}
    assert codex.outcomes == {"prompt:turn-1": "failed"}


@pytest.mark.parametrize(
    "message",
    [
        {"method": "nobody/knows", "params": {}},
        {"method": "turn/completed"},
        {"method": "turn/completed", "params": []},
        {"method": "item/completed", "params": {"item": 3}},
        {"id": 99, "result": {}},
        {"id": None},
        {},
    ],
)
def test_what_the_adapter_does_not_know_does_nothing(codex: Driven, message: dict[str, object]) -> None:
    codex.receive(**message)
    assert codex.events == codex.sent == codex.settled == []
