"""Activation, cancel, settings, answers, plans and goals at the engine (replay-runtime §2.7-§2.12)."""

from __future__ import annotations

from cassettes.engine.ports import CommandResult
from tests.engine.conftest import SESSION, Desk, kinds

DONE = CommandResult(outcome="succeeded", result={"agentSessionId": SESSION})


def test_a_new_session_is_activated_once(desk: Desk) -> None:
    wanted = {
        "type": "activation/requested",
        "agentSessionId": "session-2",
        "mode": "new",
        "requestId": "request-1",
        "agentTargetId": "local:codex",
        "clientSubmitId": "submit-1",
        "cwd": "${REPLAY_CWD}",
    }
    (command,) = desk.engine.dispatch(wanted)
    assert command.type == "session/activate"
    assert command.payload["agentTargetId"] == "local:codex"
    assert desk.engine.dispatch(wanted) == []


def test_a_new_session_needs_a_target_and_a_submit(desk: Desk) -> None:
    assert desk.engine.dispatch({"type": "activation/requested", "agentSessionId": "s", "requestId": "r"}) == []


def test_cancel_goes_to_the_running_turn(desk: Desk) -> None:
    desk.turn("turn-1")
    (command,) = desk.do("session/cancelRequested", commandId="cancel-1")
    assert (command.type, command.payload) == ("turn/cancel", {"turnId": "turn-1"})
    done = CommandResult(outcome="succeeded", result={"status": "turn_canceled", "canceled": True})
    assert desk.engine.settle(command.command_id, done) == []
    desk.turn("turn-1", "settled", "canceled")
    assert desk.engine.is_idle(SESSION)


def test_a_second_cancel_of_the_same_turn_is_no_second_command(desk: Desk) -> None:
    desk.turn("turn-1")
    desk.do("session/cancelRequested", commandId="cancel-1")
    assert desk.do("session/cancelRequested", commandId="cancel-2") == []


def test_settings_are_changed_one_after_the_other(desk: Desk) -> None:
    (first,) = desk.do("session/settingsUpdateRequested", commandId="s-1", settings={"model": "a"})
    assert desk.do("session/settingsUpdateRequested", commandId="s-2", settings={"model": "b"}) == []
    (second,) = desk.engine.settle(first.command_id, DONE)
    assert (second.command_id, second.payload) == ("s-2", {"settings": {"model": "b"}})


def test_settings_whose_result_names_another_session_stay_uncertain(desk: Desk) -> None:
    (first,) = desk.do("session/settingsUpdateRequested", commandId="s-1", settings={"model": "a"})
    desk.engine.settle(first.command_id, CommandResult(outcome="succeeded"))
    assert desk.submit("one") == []
    in_force = {"id": SESSION, "settings": {"model": "a"}}
    assert kinds(desk.engine.dispatch({"type": "session/upserted", "session": in_force})) == ["queue/sendPrompt"]


def test_a_prompt_waits_for_settings_on_their_way(desk: Desk) -> None:
    (change,) = desk.do("session/settingsUpdateRequested", commandId="s-1", settings={"model": "a"})
    assert desk.submit("one") == []
    assert kinds(desk.engine.settle(change.command_id, DONE)) == ["queue/sendPrompt"]


def test_an_answer_is_given_once_to_a_pending_question(desk: Desk) -> None:
    answer = {"turnId": "turn-1", "requestId": "r", "commandId": "a-1", "action": "accept", "optionId": "yes"}
    assert not desk.engine.intent_ready({"type": "interaction/responseRequested", "agentSessionId": SESSION, **answer})
    desk.do("interaction/upserted", interaction={"turnId": "turn-1", "requestId": "r", "status": "pending"})
    (command,) = desk.do("interaction/responseRequested", **answer)
    assert command.type == "interaction/respond"
    assert command.payload["optionId"] == "yes"
    assert desk.do("interaction/responseRequested", **{**answer, "commandId": "a-2"}) == []


def test_a_goal_is_controlled_one_step_at_a_time(desk: Desk) -> None:
    (command,) = desk.do("goal/controlRequested", commandId="g-1", action="set", objective="All tests pass")
    assert (command.type, command.payload["objective"]) == ("goal/control", "All tests pass")
    second = {"type": "goal/controlRequested", "agentSessionId": SESSION, "commandId": "g-2", "action": "pause"}
    assert not desk.engine.intent_ready(second)
    desk.engine.settle(command.command_id, DONE)
    assert desk.engine.intent_ready(second)


def test_a_recorded_cancel_waits_for_its_turn(desk: Desk) -> None:
    cancel = {"type": "session/cancelRequested", "agentSessionId": SESSION, "turnId": "turn-1"}
    assert not desk.engine.intent_ready(cancel)
    desk.turn("turn-1")
    assert desk.engine.intent_ready(cancel)


def test_a_command_that_nobody_answers_times_out(desk: Desk) -> None:
    desk.turn("turn-1")
    desk.do("session/cancelRequested", commandId="cancel-1")
    due = desk.engine.next_expiry()
    assert due is not None
    assert due - desk.now <= 30_000
    desk.wait(30_000)
    assert desk.turn("turn-1", "settled", "canceled") == []
