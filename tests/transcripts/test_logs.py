"""Stream-json and exec logs (transcript-formats §4, §6, cases 23 and 29)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cassettes.transcripts.claude_stream import read_claude_stream
from cassettes.transcripts.reading import read_transcript
from cassettes.transcripts.script import CallEnd, CallStart, Notice, Script, Text

JsonObject = dict[str, Any]


def write(path: Path, *records: JsonObject | str) -> Path:
    path.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records) + "\n")
    return path


def texts(script: Script) -> list[str]:
    return [step.text for turn in script.turns for step in turn.steps if isinstance(step, Text)]


def stream(kind: str, session: str = "s1", **members: Any) -> JsonObject:
    return {"type": kind, "session_id": session, **members}


def said(text: str, id: str = "m1", session: str = "s1") -> JsonObject:  # noqa: A002
    return stream("assistant", session, message={"id": id, "content": [{"type": "text", "text": text}]})


INIT = stream("system", subtype="init", cwd="/home/dev/project", model="claude-x", permissionMode="default")


def test_text_that_also_streamed_is_told_once(tmp_path: Path) -> None:
    def event(**members: Any) -> JsonObject:
        return stream("stream_event", event=members)

    path = write(
        tmp_path / "log.jsonl",
        INIT,
        event(type="message_start", message={"id": "m1"}),
        event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"}),
        event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "lo"}),
        event(type="message_stop"),
        said("Hello"),
        event(type="message_start", message={"id": "m2"}),
        event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": "only partial"}),
        event(type="message_stop"),
        stream("result", subtype="success", result="Hello"),
    )
    script = read_transcript(path)
    assert texts(script) == ["Hello", "only partial"]
    assert (script.cwd, script.model) == ("/home/dev/project", "claude-x")


def test_a_log_without_a_result_is_incomplete(tmp_path: Path) -> None:
    script = read_transcript(write(tmp_path / "log.jsonl", INIT, said("half")))
    assert (script.turns[0].outcome, script.turns[0].error) == ("failed", "The log ends without a result.")


def test_many_retries_are_one_retried_request(tmp_path: Path) -> None:
    retries = [
        stream("system", subtype="api_retry", attempt=number, max_retries=30, retry_delay_ms=532.1, error="529")
        for number in range(1, 24)
    ]
    script = read_transcript(
        write(tmp_path / "log.jsonl", INIT, *retries, said("answer"), stream("result", subtype="success"))
    )
    assert script.turns[-1].outcome == "completed"
    notices = [step for turn in script.turns for step in turn.steps if isinstance(step, Notice)]
    assert [notice.kind for notice in notices] == ["transport_retry"]
    assert script.report.notes["retried request"] == 23


def test_an_error_result_fails_the_turn(tmp_path: Path) -> None:
    result = stream("result", subtype="success", is_error=True, result="Credit balance is too low")
    script = read_transcript(write(tmp_path / "log.jsonl", INIT, result))
    assert (script.turns[0].outcome, script.turns[0].error) == ("failed", "Credit balance is too low")


def test_two_sessions_of_a_log_are_kept_apart(tmp_path: Path) -> None:
    done = [stream("result", session, subtype="success") for session in ("s1", "s2")]
    path = write(tmp_path / "log.jsonl", INIT, said("one"), done[0], said("two", session="s2"), done[1])
    first, sessions = read_claude_stream(path, started=1)
    second, _ = read_claude_stream(path, started=1, session_id="s2")
    assert sessions == ["s1", "s2"]
    assert (texts(first), texts(second)) == (["one"], ["two"])


def test_a_child_of_the_stream_is_nested(tmp_path: Path) -> None:
    task = {"type": "tool_use", "id": "c1", "name": "Task", "input": {"prompt": "look"}}
    inner = {**said("child says", "m2"), "parent_tool_use_id": "c1"}
    result = stream("user", message={"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]})
    path = write(
        tmp_path / "log.jsonl",
        INIT,
        stream("assistant", message={"id": "m1", "content": [task]}),
        inner,
        result,
        said("done", "m3"),
        stream("result", subtype="success"),
    )
    script = read_transcript(path)
    owned = [step.text for step in script.turns[0].steps if isinstance(step, Text) and step.owner]
    assert owned == ["child says"]


def item(event: str, kind: str, **members: Any) -> JsonObject:
    return {"type": f"item.{event}", "item": {"type": kind, **members}}


def test_an_exec_log_in_every_shape(tmp_path: Path) -> None:
    path = write(
        tmp_path / "exec.jsonl",
        "Reading prompt from stdin...",
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        item("completed", "reasoning", id="item_0", text="hm"),
        item("started", "command_execution", id="item_1", command="ls", status="in_progress", exit_code=None),
        {"type": "error", "message": "Reconnecting... 1/5"},
        item("completed", "command_execution", id="item_1", command="ls", aggregated_output="a\n", exit_code=0),
        item("started", "command_execution", id="item_2", command="sleep"),
        item("completed", "file_change", id="item_3", changes=[{"path": "a.py", "kind": "update"}], status="completed"),
        item("completed", "brand_new", id="item_4"),
        item("completed", "agent_message", id="item_5", text="Done."),
        {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}},
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        item("completed", "assistant_message", id="item_0", text="Again."),
        {"type": "turn.failed", "error": {"message": "stream lost"}},
    )
    script = read_transcript(path)
    assert script.session_id == "t1"
    assert [(turn.outcome, turn.error) for turn in script.turns] == [("completed", ""), ("failed", "stream lost")]
    assert texts(script) == ["hm", "Done.", "Again."]
    steps = script.turns[0].steps
    ends = {step.call_id: step for step in steps if isinstance(step, CallEnd)}
    assert ends["run-1-item_1"].output == {"stdout": "a\n", "exitCode": 0}
    assert "run-1-item_2" not in ends
    assert sum(isinstance(step, CallStart) for step in steps) == 3
    assert script.report.unknown == {"item brand_new": 1}
    assert [(problem.line, problem.kind) for problem in script.report.problems] == [(1, "bad_json")]
    assert script.usage.input_tokens == 5


def test_an_exec_log_that_stops_is_an_open_end(tmp_path: Path) -> None:
    path = write(
        tmp_path / "exec.jsonl",
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        item("completed", "agent_message", id="item_0", text="so far"),
    )
    turn = read_transcript(path).turns[0]
    assert (turn.outcome, turn.error) == ("failed", "The log ends before the turn does.")


def test_the_exec_form_before_october_2025(tmp_path: Path) -> None:
    path = write(
        tmp_path / "exec.jsonl",
        {"id": "0", "msg": {"type": "task_started"}},
        {"id": "0", "msg": {"type": "agent_message", "message": "hello"}},
        {"id": "0", "msg": {"type": "task_complete"}},
    )
    assert texts(read_transcript(path)) == ["hello"]
