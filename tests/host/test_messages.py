"""Messages and tool calls as the provider tells them."""

from __future__ import annotations

import pytest

from cassettes.core.errors import Conflict
from cassettes.host.events import MessageEvent
from cassettes.host.host import Host
from cassettes.host.values import OUTPUT_LIMIT, TRUNCATED
from tests.host.conftest import ROOT, TURN, Speaker

NEW = {"source": "runtime", "contentMode": "snapshot", "content": ""}


def test_deltas_add_up_and_are_told_as_what_was_added(running: Speaker) -> None:
    first = running.say("m", status="streaming", payload=NEW, delta="Hel")
    second = running.say("m", status="streaming", delta="lo")

    row = running.host.message(ROOT, "m")
    assert row is not None
    assert row.payload == {**NEW, "content": "Hello", "text": "Hello"}
    assert row.semantics == {"userVisibleAssistantResponse": True}
    assert (first.mutations[0].change, first.mutations[0].appended) == ("insert", "")
    assert (second.mutations[0].change, second.mutations[0].appended) == ("update", "lo")
    assert second.mutations[0].value is row


def test_several_deltas_of_one_unit_are_one_mutation(running: Speaker) -> None:
    running.say("m", status="streaming", payload=NEW, delta="a")
    names = {"type": "message.appended", "session_id": ROOT, "turn_id": TURN, "message_id": "m"}
    commit = running.unit(*[MessageEvent(status="streaming", delta=text, **names) for text in "bcd"])
    assert [mutation.appended for mutation in commit.mutations] == ["bcd"]


def test_a_whole_text_that_extends_the_known_one_is_told_as_what_was_added(running: Speaker) -> None:
    running.say("m", status="streaming", payload={"text": "Hel", "content": "Hel"})
    commit = running.say("m", status="streaming", payload={"text": "Hello", "content": "Hello"})
    assert commit.mutations[0].appended == "lo"


def test_the_end_of_a_message_is_told_as_a_whole(running: Speaker) -> None:
    running.say("m", status="streaming", payload=NEW, delta="Hello")
    commit = running.say("m", status="completed", payload={"text": "Hello!", "content": "Hello!"})
    assert commit.mutations[0].appended == ""
    assert running.host.message(ROOT, "m").status == "completed"  # type: ignore[union-attr]


def test_nothing_new_writes_nothing(running: Speaker) -> None:
    running.say("m", status="completed", payload={"text": "done", "content": "done"})
    version = running.host.message(ROOT, "m").version  # type: ignore[union-attr]
    commit = running.say("m", status="completed", payload={"text": "done"})
    assert (commit.txn_id, commit.mutations) == ("", ())
    assert running.host.message(ROOT, "m").version == version  # type: ignore[union-attr]


def test_a_message_that_ended_never_streams_again(running: Speaker) -> None:
    running.say("m", status="completed", payload={"text": "done", "content": "done"})
    assert running.say("m", status="streaming", delta=" and more").txn_id == ""
    running.say("m", status="streaming", payload={"note": 1})
    row = running.host.message(ROOT, "m")
    assert row is not None
    assert (row.status, row.payload["text"], row.payload["note"]) == ("completed", "done", 1)


def test_every_accepted_change_moves_a_message_to_the_end(running: Speaker) -> None:
    running.say("a", status="streaming", payload=NEW, delta="1")
    running.say("b", status="streaming", payload=NEW, delta="2")
    running.say("a", status="streaming", delta="3")
    assert [row.id for row in running.host.messages(ROOT)][-2:] == ["b", "a"]
    versions = [row.version for row in running.host.messages(ROOT)]
    assert versions == sorted(versions)
    assert running.host.session(ROOT).message_version == versions[-1]  # type: ignore[union-attr]
    assert [row.created_seq for row in running.host.messages(ROOT, TURN)] == [1, 3, 2]


def test_a_message_of_an_unknown_turn_is_refused(running: Speaker) -> None:
    with pytest.raises(Conflict) as refused:
        running.say("m", turn_id="nowhere", payload={"text": "x"})
    assert refused.value.code == "host_unknown_turn"


def test_only_audit_messages_have_no_turn(running: Speaker) -> None:
    with pytest.raises(Conflict, match="not known"):
        running.say("m", turn_id="", payload={"text": "x"})
    running.say("a", type="session.audit", turn_id="", role="system", kind="session_audit", payload={"action": "set"})
    assert running.host.message(ROOT, "a").turn_id == ""  # type: ignore[union-attr]


def test_a_refused_unit_leaves_nothing_behind(running: Speaker) -> None:
    running.say("m", status="streaming", payload=NEW, delta="kept")
    names = {"type": "message.appended", "session_id": ROOT, "turn_id": TURN}
    grows = MessageEvent(message_id="m", status="streaming", delta=" lost", **names)
    fresh = MessageEvent(message_id="n", payload={"text": "lost"}, **names)
    wrong = MessageEvent(message_id="o", **{**names, "session_id": "nowhere"})
    before = [(row.id, row.version) for row in running.host.messages(ROOT)]
    with pytest.raises(Conflict, match="session"):
        running.unit(grows, fresh, wrong)
    assert running.host.message(ROOT, "m").payload["text"] == "kept"  # type: ignore[union-attr]
    assert [(row.id, row.version) for row in running.host.messages(ROOT)] == before
    running.say("m", status="streaming", delta=" on")
    assert running.host.message(ROOT, "m").payload["content"] == "kept on"  # type: ignore[union-attr]


def test_an_event_stays_as_the_adapter_made_it(running: Speaker) -> None:
    payload = {"name": "Shell", "output": {"stdout": "a"}}
    running.call("running", payload=payload)
    running.call("running", output_delta="b", live=True)
    assert payload == {"name": "Shell", "output": {"stdout": "a"}}


# ---------------------------------------------------------------------------------------------- tool calls


def test_a_completed_call_keeps_its_started_input_and_drops_its_error(running: Speaker) -> None:
    running.call("running", payload={"name": "Shell", "input": {"command": "make"}})
    running.call("failed", payload={"error": {"message": "no"}})
    running.call("completed", payload={"output": {"exitCode": 0}, "fileChanges": {"files": []}})
    row = running.host.call(ROOT, TURN, "call-1")
    assert row is not None
    assert (row.id, row.kind, row.status) == ("toolcall:call-1", "tool_call", "completed")
    assert row.payload == {
        "callId": "call-1",
        "name": "Shell",
        "input": {"command": "make"},
        "output": {"exitCode": 0},
        "fileChanges": {"files": []},
        "status": "completed",
    }
    assert row.semantics == {"userVisibleAssistantResponse": False}


def test_a_late_start_does_not_reopen_a_call(running: Speaker) -> None:
    running.call("completed", payload={"name": "Shell"})
    running.call("running", payload={"title": "late"})
    running.call("running", output_delta="late", live=True)
    row = running.host.call(ROOT, TURN, "call-1")
    assert row is not None
    assert (row.status, row.payload["status"], row.payload["title"]) == ("completed", "completed", "late")
    assert "output" not in row.payload


def test_live_output_adds_up(running: Speaker) -> None:
    running.call("running", output_delta="one ", live=True)
    running.call("running", output_delta="two", live=True)
    assert running.host.call(ROOT, TURN, "call-1").payload["output"] == {"stdout": "one two"}  # type: ignore[union-attr]


@pytest.mark.parametrize("piece", ["x" * 1000, "é" * 333, "日本" * 200, "🎬" * 100])
def test_live_output_stops_at_the_limit_between_two_characters(running: Speaker, piece: str) -> None:
    for _ in range(OUTPUT_LIMIT // len(piece.encode()) + 3):
        running.call("running", output_delta=piece, live=True)
    text = running.host.call(ROOT, TURN, "call-1").payload["output"]["stdout"]  # type: ignore[union-attr]
    size = len(text.encode())
    assert OUTPUT_LIMIT - 4 <= size <= OUTPUT_LIMIT
    assert text.endswith(TRUNCATED)
    assert set(text.removesuffix(TRUNCATED)) == set(piece)
    assert running.call("running", output_delta=piece, live=True).txn_id == ""


def test_whole_output_is_bounded_too(running: Speaker) -> None:
    running.call("completed", payload={"output": {"stdout": "é" * OUTPUT_LIMIT, "stderr": "short"}})
    output = running.host.call(ROOT, TURN, "call-1").payload["output"]  # type: ignore[union-attr]
    assert output["stderr"] == "short"
    assert output["stdout"].endswith(TRUNCATED)
    assert len(output["stdout"].encode()) <= OUTPUT_LIMIT
    again = running.call("completed", payload={"output": {"stdout": output["stdout"]}})
    assert again.txn_id == ""


def test_the_final_output_replaces_the_live_one(host: Host, running: Speaker) -> None:
    running.call("running", output_delta="live", live=True)
    running.call("completed", payload={"output": {"stdout": "final", "exitCode": 0}})
    assert host.call(ROOT, TURN, "call-1").payload["output"] == {"stdout": "final", "exitCode": 0}  # type: ignore[union-attr]
