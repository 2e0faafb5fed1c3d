"""The prompt queue (replay-runtime §2.5): what is sent when, and what waits for what."""

from __future__ import annotations

import pytest

from cassettes.engine.ports import Command
from tests.engine.conftest import SESSION, Desk, kinds


def prompt_of(commands: list[Command]) -> str:
    """The one prompt that is sent."""
    assert kinds(commands) == ["queue/sendPrompt"]
    return str(commands[0].payload["promptId"])


def test_a_prompt_to_an_idle_session_is_sent_at_once(desk: Desk) -> None:
    commands = desk.submit("one")
    assert prompt_of(commands) == "one"
    assert commands[0].payload["content"] == [{"type": "text", "text": "one"}]
    assert desk.queued() == []


def test_a_prompt_during_a_turn_waits_for_its_end(desk: Desk) -> None:
    desk.turn("turn-1")
    assert desk.submit("one") == []
    assert desk.queued() == ["one"]
    assert prompt_of(desk.turn("turn-1", "settled", "completed")) == "one"


def test_prompts_are_sent_in_their_order_one_a_turn(desk: Desk) -> None:
    (first,) = desk.submit("one")
    desk.submit("two")
    desk.submit("three")
    assert desk.sent(first, "turn-1") == []
    desk.turn("turn-1")
    (second,) = desk.turn("turn-1", "settled", "completed")
    assert second.payload["promptId"] == "two"
    assert desk.queued() == ["three"]


def test_the_next_prompt_waits_until_the_turn_of_the_last_one_has_settled(desk: Desk) -> None:
    """The barrier: between acceptance and the first word of its Turn the session only looks idle."""
    (first,) = desk.submit("one")
    desk.submit("two")
    assert desk.sent(first, "turn-1") == []
    assert desk.queued() == ["two"]


def test_the_same_submit_is_sent_once(desk: Desk) -> None:
    desk.turn("turn-1")
    desk.submit("one")
    desk.submit("one")
    assert desk.queued() == ["one"]


def test_a_prompt_can_be_removed_before_it_is_sent_and_not_after(desk: Desk) -> None:
    (moving,) = desk.submit("one")
    desk.submit("two")
    desk.do("queue/removed", promptId="two")
    desk.do("queue/removed", promptId="one")
    assert desk.queued() == []
    assert desk.sent(moving, "turn-1") == []


def test_a_suspended_queue_sends_nothing_until_it_is_resumed(desk: Desk) -> None:
    desk.turn("turn-1")
    desk.submit("one")
    desk.do("queue/suspended")
    assert desk.turn("turn-1", "settled", "completed") == []
    assert prompt_of(desk.do("queue/resumed")) == "one"


def test_a_prompt_that_failed_holds_the_queue(desk: Desk) -> None:
    (first,) = desk.submit("one")
    desk.submit("two")
    assert desk.failed(first) == []
    assert desk.queued() == ["one", "two"]
    assert desk.engine.queue_view(SESSION)["prompts"][0]["failed"] is True
    assert prompt_of(desk.do("queue/removed", promptId="one")) == "two"


def test_send_now_during_a_turn_becomes_guidance(desk: Desk) -> None:
    desk.turn("turn-1")
    desk.submit("waits")
    (steer,) = desk.submit("steer", routing="send_now")
    assert steer.payload["guidance"] is True
    assert steer.payload["targetTurnId"] == "turn-1"
    assert desk.queued() == ["waits"]


def test_send_now_cancels_first_where_the_provider_takes_no_guidance(desk: Desk) -> None:
    no_guidance = {"id": SESSION, "activeTurnId": "turn-1", "capabilities": {"activeTurnGuidance": False}}
    desk.turn("turn-1")
    desk.engine.dispatch({"type": "session/upserted", "session": no_guidance})
    commands = desk.submit("now", routing="send_now")
    assert kinds(commands) == ["turn/cancel"]
    assert commands[0].payload == {"turnId": "turn-1"}


def test_an_open_question_blocks_the_queue(desk: Desk) -> None:
    desk.do("interaction/upserted", interaction={"turnId": "turn-1", "requestId": "r", "status": "pending"})
    assert desk.submit("one") == []
    answered = {"turnId": "turn-1", "requestId": "r", "status": "answered"}
    assert prompt_of(desk.do("interaction/upserted", interaction=answered)) == "one"


def test_a_prompt_whose_delivery_is_uncertain_is_never_sent_twice(desk: Desk) -> None:
    desk.submit("one")
    desk.submit("two")
    assert kinds(desk.wait(90_000)) == ["session/reconcile"]
    assert desk.queued()[0] == "one"
    told = {"turnId": "turn-1", "payload": {"clientSubmitId": "one"}}
    assert desk.do("message/snapshotReceived", message=told) == []
    assert desk.queued() == ["two"]
    assert prompt_of(desk.turn("turn-1", "settled", "completed")) == "two"


def test_a_second_result_of_a_command_is_ignored(desk: Desk) -> None:
    (first,) = desk.submit("one")
    desk.sent(first, "turn-1")
    assert desk.failed(first) == []
    assert desk.engine.queue_view(SESSION)["prompts"] == []


@pytest.mark.parametrize("intent", [{"type": "nobody/knowsThis"}, {"type": None}, {}])
def test_an_unknown_intent_changes_nothing(desk: Desk, intent: dict[str, object]) -> None:
    assert desk.engine.dispatch(intent) == []


def test_an_intent_of_another_workspace_is_ignored(desk: Desk) -> None:
    assert desk.submit("one", workspaceId="elsewhere") == []
