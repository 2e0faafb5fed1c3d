"""Turns: how they begin, move on and end."""

from __future__ import annotations

import pytest

from cassettes.core.errors import Conflict
from cassettes.host.events import RootTurnEvent
from cassettes.host.host import Host, NewOperation
from tests.host.conftest import CHILD, ROOT, TURN, Speaker, submit


def phase(host: Host, turn_id: str = TURN) -> tuple[str, str]:
    row = host.turn(ROOT, turn_id)
    assert row is not None
    return row.phase, row.outcome


def cancel(host: Host, name: str = "cancel-1") -> None:
    host.begin_operation(NewOperation(id=name, session_id=ROOT, kind="cancel_turn", turn_id=TURN))


def test_a_submit_opens_the_turn_with_its_user_message(host: Host) -> None:
    commit = submit(host, text="Write a test")
    assert [(one.entity, one.change) for one in commit.mutations] == [
        ("turn", "insert"),
        ("session", "update"),
        ("message", "insert"),
    ]
    assert phase(host) == ("submitted", "")
    assert host.active_turn(ROOT) is host.turn(ROOT, TURN)
    message = host.message(ROOT, "client-submit:user:submit-turn-1")
    assert message is not None
    assert message.payload == {
        "source": "runtime",
        "clientSubmitId": "submit-turn-1",
        "text": "Write a test",
        "content": "Write a test",
    }


def test_the_same_submit_again_changes_nothing_and_another_turn_has_to_wait(host: Host) -> None:
    submit(host)
    assert submit(host).txn_id == ""
    with pytest.raises(Conflict) as refused:
        submit(host, "turn-2")
    assert refused.value.code == "host_turn_active"
    assert [turn.id for turn in host.turns(ROOT)] == [TURN]


def test_a_refused_prompt_fails_its_turn(host: Host) -> None:
    submit(host)
    host.reject_submit(ROOT, "submit-turn-1", "no credit")
    assert phase(host) == ("settled", "failed")
    assert host.turn(ROOT, TURN).error == {"message": "no credit"}  # type: ignore[union-attr]
    assert host.is_settled(ROOT)


def test_refused_guidance_fails_only_its_message(running: Speaker) -> None:
    submit(running.host, text="faster", guidance=True, name="steer")
    running.host.reject_submit(ROOT, "steer", "too late")
    assert phase(running.host) == ("running", "")
    message = running.host.message(ROOT, "client-submit:user:steer")
    assert message is not None
    assert (message.status, message.payload["guidance"]) == ("failed", True)


def test_the_provider_turn_is_bound_and_the_turn_runs(running: Speaker) -> None:
    row = running.host.turn(ROOT, TURN)
    assert row is not None
    assert (row.root_provider_turn_id, row.provider_phase, row.phase) == ("provider-turn-1", "running", "running")
    assert running.provider("started", provider_turn_id="provider-turn-1").txn_id == ""


def test_one_provider_turn_cannot_belong_to_two_turns(running: Speaker) -> None:
    running.provider("completed", outcome="completed", provider_turn_id="provider-turn-1")
    submit(running.host, "turn-2")
    with pytest.raises(Conflict) as refused:
        running.provider("started", "turn-2", provider_turn_id="provider-turn-1")
    assert refused.value.code == "host_provider_turn_bound"
    assert phase(running.host, "turn-2") == ("submitted", "")


@pytest.mark.parametrize("origin", ["goal_continuation", "provider_initiated"])
def test_a_proven_turn_of_the_provider_is_created(host: Host, origin: str) -> None:
    Speaker(host).provider("started", "turn-goal", provider_turn_id="p", origin=origin)
    row = host.turn(ROOT, "turn-goal")
    assert row is not None
    assert (row.origin, row.phase) == (origin, "running")
    assert host.active_turn(ROOT) is row


def test_a_provider_turn_never_creates_a_turn_without_proof(host: Host) -> None:
    with pytest.raises(Conflict) as refused:
        Speaker(host).provider("started", "turn-goal", provider_turn_id="p")
    assert refused.value.code == "host_unknown_turn"


@pytest.mark.parametrize(
    ("words", "phase_after"),
    [
        (["working"], "running"),
        (["waiting_approval"], "waiting"),
        (["waiting_input", "working"], "running"),
        (["settling", "working"], "settling"),
        (["nonsense"], "running"),
    ],
)
def test_phases_follow_the_words_of_the_activity(running: Speaker, words: list[str], phase_after: str) -> None:
    for word in words:
        running.turn("updated", phase=word)
    assert phase(running.host) == (phase_after, "")


def test_the_end_of_a_turn_settles_everything_of_it(running: Speaker) -> None:
    running.say("a1", status="completed", payload={"text": "first"})
    running.say("a2", status="completed", payload={"text": "second"})
    running.say("notice", status="completed", payload={"kind": "agent_system_notice", "text": "compacted"})
    running.ask(input={"command": "rm"})
    commit = running.turn(
        "completed", outcome="completed", completed_command={"kind": "compact", "status": "completed"}
    )
    row = running.host.turn(ROOT, TURN)
    assert row is not None
    assert row.completed_command == {
        "kind": "compact",
        "status": "completed",
        "finalAssistantMessageResolved": True,
        "finalAssistantMessageId": "a2",
    }
    assert running.host.interaction(ROOT, TURN, "request-1").status == "superseded"  # type: ignore[union-attr]
    assert running.host.session(ROOT).active_turn_id == ""  # type: ignore[union-attr]
    assert {one.entity for one in commit.mutations} == {"turn", "session", "interaction"}


def test_a_settled_turn_is_immutable(running: Speaker) -> None:
    running.turn("failed", error={"message": "boom"})
    assert phase(running.host) == ("settled", "failed")
    assert running.turn("completed").txn_id == ""
    assert running.turn("updated", phase="working", file_changes={"files": [1]}).txn_id == ""
    assert running.provider("started", provider_turn_id="late").txn_id == ""
    assert running.provider("completed", outcome="completed").txn_id == ""
    assert running.ask().txn_id == ""
    assert phase(running.host) == ("settled", "failed")


def test_file_changes_of_a_turn_are_replaced_by_the_merged_set(running: Speaker) -> None:
    changes = {"files": [{"path": "/rec/repo/a", "change": "added"}]}
    running.turn("updated", phase="working", file_changes=changes)
    assert running.turn("updated", phase="working", file_changes=changes).txn_id == ""
    assert running.host.turn(ROOT, TURN).file_changes == changes  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------- cancel


def test_a_pending_cancel_turns_an_interruption_into_canceled(running: Speaker) -> None:
    cancel(running.host)
    running.turn("completed", outcome="interrupted")
    assert phase(running.host) == ("settled", "canceled")
    running.host.complete_operation("cancel-1", {})
    assert phase(running.host) == ("settled", "canceled")
    assert running.host.is_settled(ROOT)


def test_a_cancel_that_ends_first_decides(running: Speaker) -> None:
    cancel(running.host)
    running.host.complete_operation("cancel-1", {})
    assert phase(running.host) == ("settled", "canceled")
    assert running.turn("completed", outcome="interrupted").txn_id == ""


def test_a_turn_that_completed_before_the_cancel_took_effect_stays_completed(running: Speaker) -> None:
    cancel(running.host)
    running.provider("completed", outcome="completed", provider_turn_id="provider-turn-1")
    running.host.complete_operation("cancel-1", {})
    assert phase(running.host) == ("settled", "completed")


def test_a_failed_cancel_leaves_the_interruption(running: Speaker) -> None:
    cancel(running.host)
    assert not running.host.is_settled(ROOT)
    running.host.fail_operation("cancel-1", "not reachable")
    assert phase(running.host) == ("running", "")
    running.turn("completed", outcome="interrupted")
    assert phase(running.host) == ("settled", "interrupted")


# ---------------------------------------------------------------------------------------------- children


def test_the_root_turn_waits_for_its_children(running: Speaker) -> None:
    running.child(title="Look around")
    running.turn("started", "child-turn", CHILD)
    running.provider("completed", outcome="completed", provider_turn_id="provider-turn-1")
    assert phase(running.host) == ("running", "")
    running.turn("completed", "child-turn", CHILD)
    assert phase(running.host) == ("settled", "completed")


def test_a_child_of_another_turn_does_not_hold_a_turn_up(running: Speaker) -> None:
    running.child()
    running.turn("completed")
    submit(running.host, "turn-2")
    running.provider("started", "turn-2", provider_turn_id="provider-turn-2")
    running.provider("completed", "turn-2", outcome="failed", error={"message": "x"})
    assert phase(running.host, "turn-2") == ("settled", "failed")
    assert not running.host.is_settled(ROOT)


def test_a_checkpoint_of_the_provider_is_kept_to_resume(running: Speaker) -> None:
    event = RootTurnEvent(
        type="root_provider_turn.checkpoint", session_id=ROOT, turn_id=TURN, resume_checkpoint={"defaultModel": "m"}
    )
    running.unit(event)
    assert running.host.session(ROOT).provider_resume_checkpoint == {"defaultModel": "m"}  # type: ignore[union-attr]
    assert running.unit(event).txn_id == ""
