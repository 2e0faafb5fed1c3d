"""The adapter of the Agent Client Protocol alone: the third provider, through the same ports."""

from __future__ import annotations

from typing import Any

import pytest

from cassettes.providers import registry
from tests.providers.driving import Driven

JsonObject = dict[str, Any]
NAME = "acp-session"


@pytest.fixture
def acp() -> Driven:
    """A session that is open and idle."""
    driven = Driven("acp")
    driven.start()
    driven.receive(id=driven.sent[0]["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    driven.receive(id=driven.sent[0]["id"], result={"sessionId": NAME})
    assert driven.outcomes == {"start": "succeeded"}
    return driven


def update(acp: Driven, what: str, **members: Any) -> None:
    """One `session/update`."""
    acp.receive(method="session/update", params={"sessionId": NAME, "update": {"sessionUpdate": what, **members}})


def said(acp: Driven, text: str, kind: str = "agent_message_chunk", **members: Any) -> None:
    """A chunk of text."""
    update(acp, kind, content={"type": "text", "text": text}, **members)


def prompt(acp: Driven) -> int:
    """A prompt; gives the id of its request."""
    acp.prompt("turn-1", "hello")
    assert acp.outcomes == {"prompt:turn-1": "succeeded"}
    return int(acp.sent[0]["id"])


def test_the_registry_knows_it_by_id_and_target() -> None:
    assert registry.provider("acp").target == "local:acp"
    assert registry.provider_for_target("local:acp").id == "acp"
    assert registry.codec("acp").encode({"id": 1, "method": "x"}) == b'{"jsonrpc":"2.0","id":1,"method":"x"}\n'


def test_a_session_is_made_in_its_folder(acp: Driven) -> None:
    driven = Driven("acp")
    driven.start()
    assert driven.sent[0]["method"] == "initialize"
    assert driven.sent[0]["params"]["clientCapabilities"]["terminal"] is False
    driven.receive(id=0, result={"protocolVersion": 1})
    assert (driven.sent[0]["method"], driven.sent[0]["params"]["cwd"]) == ("session/new", "/project")


def test_a_resumed_session_is_loaded_and_its_history_is_no_news() -> None:
    driven = Driven("acp")
    driven.start(provider_session_id=NAME)
    driven.receive(id=0, result={"agentCapabilities": {"loadSession": True}})
    assert driven.sent[0]["method"] == "session/load"
    said(driven, "from yesterday")
    assert driven.events == []
    driven.receive(id=1, result=None)
    assert driven.outcomes == {"start": "succeeded"}


def test_an_agent_that_cannot_load_says_so() -> None:
    driven = Driven("acp")
    driven.start(provider_session_id=NAME)
    driven.receive(id=0, result={"agentCapabilities": {}})
    assert driven.settled[0].error_code == "session_load_unsupported"


def test_a_person_who_is_not_signed_in_fails_the_start_with_a_code() -> None:
    driven = Driven("acp")
    driven.start()
    driven.receive(id=0, result={})
    driven.receive(id=1, error={"code": -32000, "message": "Authentication required"})
    assert driven.settled[0].error_code == "auth_required"


def test_the_first_word_begins_the_turn_and_the_response_ends_it(acp: Driven) -> None:
    name = prompt(acp)
    said(acp, "Good ")
    assert acp.kinds == ["root_provider_turn.started", "message.appended"]
    said(acp, "day")
    assert [event.delta for event in acp.events] == ["day"]
    acp.receive(id=name, result={"stopReason": "end_turn"})
    assert acp.kinds == ["message.created", "root_provider_turn.completed"]
    assert acp.events[0].payload["text"] == "Good day"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"result": {"stopReason": "end_turn"}}, "completed"),
        ({"result": {"stopReason": "max_tokens"}}, "completed"),
        ({"result": {}}, "completed"),
        ({"result": {"stopReason": "refusal"}}, "failed"),
        ({"result": {"stopReason": "cancelled"}}, "canceled"),
        ({"error": {"code": -32603, "message": "broken"}}, "failed"),
    ],
)
def test_the_stop_reason_is_the_outcome(acp: Driven, answer: JsonObject, outcome: str) -> None:
    acp.receive(id=prompt(acp), **answer)
    assert acp.kinds[-1] == "root_provider_turn.completed"
    assert acp.events[-1].outcome == outcome


def test_thoughts_and_answers_and_message_ids_part_the_text(acp: Driven) -> None:
    prompt(acp)
    ids = []
    for text, kind, members in (
        ("hm", "agent_thought_chunk", {}),
        ("a", "agent_message_chunk", {"messageId": "1"}),
        ("b", "agent_message_chunk", {"messageId": "1"}),
        ("c", "agent_message_chunk", {"messageId": "2"}),
    ):
        said(acp, text, kind, **members)
        ids.append(acp.events[-1].message_id)
    assert len(set(ids)) == 3
    assert ids[1] == ids[2]


def test_a_call_grows_by_updates_and_ends_once(acp: Driven) -> None:
    prompt(acp)
    update(acp, "tool_call", toolCallId="c", title="Run tests", kind="execute", rawInput={"command": "make test"})
    assert acp.kinds == ["root_provider_turn.started", "call.started"]
    update(acp, "tool_call_update", toolCallId="c", status="in_progress")
    assert acp.kinds == ["call.started"]
    assert acp.events[0].live
    block = {"type": "content", "content": {"type": "text", "text": "all pass"}}
    update(acp, "tool_call_update", toolCallId="c", status="completed", content=[block], rawOutput={"exitCode": 0})
    assert acp.kinds == ["call.completed"]
    assert acp.events[0].payload["output"] == {"text": "all pass", "exitCode": 0}
    assert acp.events[0].payload["input"] == {"command": "make test"}
    update(acp, "tool_call_update", toolCallId="c", status="completed")
    assert acp.events == []


def test_an_update_without_its_call_begins_it(acp: Driven) -> None:
    prompt(acp)
    update(acp, "tool_call_update", toolCallId="c", title="Read", status="failed")
    assert acp.kinds[-2:] == ["call.started", "call.failed"]


def test_a_diff_is_a_changed_file(acp: Driven) -> None:
    prompt(acp)
    diff = {"type": "diff", "path": "/project/a.py", "oldText": "a\n", "newText": "b\n"}
    new = {"type": "diff", "path": "/project/b.py", "newText": "new\n"}
    update(acp, "tool_call", toolCallId="c", title="Edit", kind="edit", status="completed", content=[diff, new])
    changed = next(event for event in acp.events if event.type == "turn.updated").file_changes
    assert [(one["path"], one["change"]) for one in changed["files"]] == [
        ("/project/a.py", "modified"),
        ("/project/b.py", "added"),
    ]


def test_a_plan_is_shown_whole_each_time(acp: Driven) -> None:
    prompt(acp)
    for status in ("in_progress", "completed"):
        update(acp, "plan", entries=[{"content": "Look", "status": status, "priority": "high"}])
        done = next(event for event in acp.events if event.type == "call.completed")
        assert done.payload["input"]["todos"] == [{"content": "Look", "status": status}]


OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


def ask(acp: Driven) -> str:
    """The agent asks; gives the id of the Interaction."""
    prompt(acp)
    call = {"toolCallId": "c", "title": "rm x", "rawInput": {"command": "rm x"}}
    acp.receive(id="p-1", method="session/request_permission", params={"toolCall": call, "options": OPTIONS})
    question = next(event for event in acp.events if event.type == "interaction.requested")
    assert question.metadata["actions"][0] == {"id": "yes", "label": "Allow", "semantic": "approve"}
    return str(question.request_id)


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        ({"option_id": "always"}, "always"),
        ({"action": "approve"}, "yes"),
        ({"action": "approve_for_session"}, "always"),
        ({"action": "deny"}, "no"),
        ({"action": "abort"}, "no"),
    ],
)
def test_an_answer_becomes_the_option_that_it_means(acp: Driven, answer: JsonObject, option: str) -> None:
    acp.answer("turn-1", ask(acp), **answer)
    assert acp.sent == [{"id": "p-1", "result": {"outcome": {"outcome": "selected", "optionId": option}}}]
    assert acp.outcomes == {"answer:p-1": "succeeded"}


def test_an_answer_that_is_no_option_is_refused_and_the_question_stays(acp: Driven) -> None:
    name = ask(acp)
    acp.answer("turn-1", name, action="perhaps")
    assert acp.settled[0].error_code == "invalid_request"
    acp.answer("turn-1", name, action="approve")
    assert acp.outcomes == {"answer:p-1": "succeeded"}


def test_an_interrupt_withdraws_the_question_and_waits_for_the_end(acp: Driven) -> None:
    ask(acp)
    acp.cancel("turn-1")
    assert [message.get("method") for message in acp.sent] == ["session/cancel", None]
    assert acp.sent[1]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert acp.kinds == ["interaction.superseded"]
    acp.receive(id=2, result={"stopReason": "cancelled"})
    assert acp.outcomes == {"cancel:turn-1": "succeeded"}
    assert acp.events[-1].outcome == "canceled"


def test_what_the_client_does_not_offer_is_refused(acp: Driven) -> None:
    prompt(acp)
    acp.receive(id=9, method="fs/read_text_file", params={"path": "/etc/passwd"})
    assert acp.sent[0]["error"]["code"] == -32601


def test_guidance_and_goals_are_refused_with_a_reason(acp: Driven) -> None:
    prompt(acp)
    acp.prompt("turn-1", "faster", guidance=True)
    assert acp.settled[0].error_code == "agent.no_active_turn"


def test_the_end_of_the_process_fails_what_was_open(acp: Driven) -> None:
    ask(acp)
    acp.exit(1)
    assert acp.kinds == ["interaction.superseded", "root_provider_turn.completed"]
    assert acp.events[-1].error["code"] == "provider_exited"


@pytest.mark.parametrize(
    "message",
    [
        {"method": "session/update", "params": {"sessionId": "another", "update": {"sessionUpdate": "plan"}}},
        {"method": "session/update", "params": {"sessionId": NAME, "update": {"sessionUpdate": "future_kind"}}},
        {"method": "session/update", "params": {"sessionId": NAME}},
        {"method": "_vendor/extension", "params": {}},
        {"id": 99, "result": {}},
        {"id": "text", "result": {}},
        {},
    ],
)
def test_what_the_adapter_does_not_know_does_nothing(acp: Driven, message: JsonObject) -> None:
    prompt(acp)
    acp.receive(**message)
    assert acp.events == acp.sent == acp.settled == []
