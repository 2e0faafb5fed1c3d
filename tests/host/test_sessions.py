"""Sessions, children, Interactions, settings and goals."""

from __future__ import annotations

import msgspec
import pytest

from cassettes.core.errors import Conflict
from cassettes.host.events import GoalEvent, InteractionEvent, SessionEvent
from cassettes.host.host import Host, NewOperation, NewSession
from tests.host.conftest import CHILD, LINEAGE, ROOT, TURN, Speaker


def update(host: Host, **members: object) -> str:
    event = SessionEvent(type="session.updated", session_id=ROOT, **members)  # type: ignore[arg-type]
    return host.apply([event], cause_ref="unit").txn_id


def test_a_session_is_created_once(host: Host) -> None:
    same = NewSession(id=ROOT, agent_target_id="local:codex", provider="codex", cwd="/rec/repo")
    assert host.create_session(same).txn_id == ""
    with pytest.raises(Conflict) as refused:
        host.create_session(msgspec.structs.replace(same, cwd="/elsewhere"))
    assert (refused.value.code, refused.value.place.path) == ("host_session_exists", "$.cwd")


def test_what_the_provider_tells_of_a_session_is_kept(host: Host) -> None:
    assert update(host, title="A title", settings={"planMode": True})
    row = host.session(ROOT)
    assert row is not None
    assert (row.title, row.settings, row.provider_session_id) == ("A title", {"planMode": True}, "thread-1")
    assert update(host, title="A title", settings={"planMode": True}) == ""
    assert update(host, usage={"tokens": 5}, activity="running") == ""


def test_settings_are_merged_and_the_model_follows(host: Host) -> None:
    host.update_settings(ROOT, {"model": "m1", "speed": "fast"})
    host.update_settings(ROOT, {"speed": "normal"})
    row = host.session(ROOT)
    assert row is not None
    assert (row.settings, row.model) == ({"model": "m1", "speed": "normal"}, "m1")
    assert host.update_settings(ROOT, {"speed": "normal"}).txn_id == ""


def test_a_child_is_opened_with_its_turn_and_its_lineage_is_final(running: Speaker) -> None:
    commit = running.child(title="Look around")
    assert [(one.entity, one.change) for one in commit.mutations] == [("session", "insert"), ("turn", "insert")]
    row = running.host.session(CHILD)
    assert row is not None
    assert (row.kind, row.root_session_id, row.parent_tool_call_id, row.cwd) == (
        "child",
        ROOT,
        "call-spawn",
        "/rec/repo",
    )
    assert running.host.turn(CHILD, "child-turn").origin == "provider_initiated"  # type: ignore[union-attr]
    assert [one.id for one in running.host.graph(CHILD)] == [ROOT, CHILD]
    other = msgspec.structs.replace(LINEAGE, parent_tool_call_id="call-other")
    with pytest.raises(Conflict) as refused:
        running.unit(SessionEvent(type="session.updated", session_id=CHILD, lineage=other))
    assert refused.value.code == "host_lineage"


def test_a_child_that_ends_is_marked(running: Speaker) -> None:
    running.child()
    running.turn("completed", "child-turn", CHILD)
    running.child("completed")
    assert running.host.session(CHILD).ended_at_ms > 0  # type: ignore[union-attr]


def test_a_session_that_fails_takes_its_live_turn_along(running: Speaker) -> None:
    running.unit(SessionEvent(type="session.failed", session_id=ROOT, error={"message": "gone"}))
    row = running.host.turn(ROOT, TURN)
    assert row is not None
    assert (row.phase, row.outcome, row.error) == ("settled", "failed", {"message": "gone"})


def test_an_unknown_session_is_refused(host: Host) -> None:
    with pytest.raises(Conflict) as refused:
        host.apply([SessionEvent(type="session.updated", session_id="nowhere", title="x")], cause_ref="unit")
    assert refused.value.code == "host_unknown_session"


# ---------------------------------------------------------------------------------------------- Interactions


def test_a_request_makes_the_turn_wait(running: Speaker) -> None:
    running.ask(kind="question", tool_name="AskUserQuestion", input={"questions": []})
    row = running.host.interaction(ROOT, TURN, "request-1")
    assert row is not None
    assert (row.kind, row.status, row.tool_name) == ("question", "pending", "AskUserQuestion")
    assert running.host.turn(ROOT, TURN).phase == "waiting"  # type: ignore[union-attr]
    assert running.host.interactions(ROOT, pending_only=True) == [row]
    assert running.ask(kind="question", tool_name="AskUserQuestion", input={"questions": []}).txn_id == ""
    with pytest.raises(Conflict, match="different content"):
        running.ask(kind="question", tool_name="AskUserQuestion", input={"questions": [1]})


def test_only_an_operation_answers(running: Speaker) -> None:
    running.ask()
    operation = NewOperation(
        id="op",
        session_id=ROOT,
        kind="interactive_response",
        turn_id=TURN,
        request_id="request-1",
        payload={"action": "", "optionId": "accept", "payload": None},
    )
    assert running.host.begin_operation(operation).mutations == ()
    assert running.host.begin_operation(operation).txn_id == ""
    assert not running.host.is_settled(ROOT)
    commit = running.host.complete_operation("op", {})
    row = running.host.interaction(ROOT, TURN, "request-1")
    assert row is not None
    assert (row.status, row.output) == ("answered", {"optionId": "accept"})
    assert [one.key for one in commit.mutations] == [(ROOT, TURN, "request-1")]
    assert running.host.complete_operation("op", {}).txn_id == ""


def test_an_answer_that_comes_too_late_changes_no_interaction(running: Speaker) -> None:
    running.ask()
    names = {"session_id": ROOT, "turn_id": TURN, "request_id": "request-1"}
    running.host.begin_operation(NewOperation(id="op", kind="interactive_response", **names))
    running.unit(InteractionEvent(type="interaction.superseded", **names))
    running.host.complete_operation("op", {"output": {"optionId": "accept"}})
    row = running.host.interaction(ROOT, TURN, "request-1")
    assert row is not None
    assert (row.status, row.output) == ("superseded", {})


def test_an_operation_has_to_be_known_and_keeps_its_content(running: Speaker) -> None:
    with pytest.raises(Conflict) as unknown:
        running.host.complete_operation("nowhere", {})
    assert unknown.value.code == "host_unknown_operation"
    running.host.begin_operation(NewOperation(id="op", session_id=ROOT, kind="cancel_turn", turn_id=TURN))
    with pytest.raises(Conflict) as reused:
        running.host.begin_operation(NewOperation(id="op", session_id=ROOT, kind="edit_retry", turn_id=TURN))
    assert reused.value.code == "host_operation_exists"


def test_a_plan_decision_leaves_its_notice(running: Speaker) -> None:
    running.ask("plan-1", kind="plan")
    names = {"session_id": ROOT, "turn_id": TURN, "request_id": "plan-1"}
    notice = {"noticeKind": "plan_implementation_started", "title": "Plan accepted"}
    running.host.begin_operation(NewOperation(id="op", kind="plan_decision", payload={"notice": notice}, **names))
    running.host.complete_operation("op", {})
    message = running.host.message(ROOT, "plan-decision:op:status")
    assert message is not None
    assert message.payload == {"kind": "agent_system_notice", **notice, "operationId": "op"}
    assert running.host.interaction(ROOT, TURN, "plan-1").status == "answered"  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------- goals


def test_a_goal_lives_through_its_operations(host: Host) -> None:
    host.control_goal(ROOT, "goal-1", "set", "ship it")
    goal = host.goal(ROOT)
    assert goal is not None
    assert (goal.desired, goal.revision, goal.sync_status) == (
        {"objective": "ship it", "status": "active"},
        1,
        "pending",
    )
    assert host.message(ROOT, "goal-control:goal-1").kind == "session_audit"  # type: ignore[union-attr]
    observed = {"objective": "ship it", "status": "active"}
    applied = GoalEvent(type="goal.control_applied", session_id=ROOT, operation_id="goal-1", revision=1, goal=observed)
    host.apply([applied], cause_ref="unit")
    assert (goal.observed, goal.sync_status, goal.pending_operation_id) == (observed, "synced", "")
    host.control_goal(ROOT, "goal-2", "pause")
    host.complete_operation("goal-2", {"goal": {**observed, "status": "paused"}})
    assert (goal.desired["status"], goal.observed["status"], goal.revision) == ("paused", "paused", 2)
    host.control_goal(ROOT, "goal-3", "clear")
    host.fail_operation("goal-3", "offline")
    assert (goal.tombstoned, goal.sync_status, goal.last_error) == (True, "failed", "offline")
    assert host.is_settled(ROOT)


def test_evidence_of_an_old_generation_is_ignored(host: Host) -> None:
    host.control_goal(ROOT, "goal-1", "set", "a")
    host.control_goal(ROOT, "goal-2", "set", "b")
    old = GoalEvent(type="goal.control_applied", session_id=ROOT, operation_id="goal-1", revision=1, goal={})
    assert host.apply([old], cause_ref="unit").txn_id == ""


def test_a_goal_that_contradicts_its_operation_diverges(host: Host) -> None:
    host.control_goal(ROOT, "goal-1", "set", "a")
    host.apply([GoalEvent(type="goal.reconcile_required", session_id=ROOT, operation_id="goal-1")], cause_ref="unit")
    goal = host.goal(ROOT)
    assert goal is not None
    assert (goal.sync_status, goal.pending_operation_id, host.is_settled(ROOT)) == ("diverged", "", True)


def test_an_observed_goal_proves_nothing(host: Host) -> None:
    assert update(host, goal={"objective": "a", "status": "active"})
    goal = host.goal(ROOT)
    assert goal is not None
    assert (goal.sync_status, goal.tombstoned) == ("unknown", False)
    assert update(host, goal={"objective": "a", "status": "active"}) == ""
    update(host, goal={})
    assert (goal.observed, goal.tombstoned) == ({}, True)


def test_there_must_be_a_goal_to_pause(host: Host) -> None:
    with pytest.raises(Conflict) as refused:
        host.control_goal(ROOT, "goal-1", "pause")
    assert refused.value.code == "host_goal_missing"
    assert host.goal(ROOT) is None
