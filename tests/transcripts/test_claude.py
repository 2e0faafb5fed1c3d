"""Claude Code transcripts (transcript-formats §3, cases 6-21, 31)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cassettes.core.errors import InputRejected
from cassettes.transcripts.claude import read_claude
from cassettes.transcripts.reading import read_transcript
from cassettes.transcripts.script import (
    CallEnd,
    CallStart,
    ChildEnd,
    ChildStart,
    Compaction,
    Guide,
    Notice,
    Script,
    Text,
)
from tests.transcripts.making import START, ClaudeFile


def texts(script: Script, kind: str = "assistant") -> list[str]:
    return [step.text for turn in script.turns for step in turn.steps if isinstance(step, Text) and step.kind == kind]


def calls(script: Script) -> dict[str, CallEnd | None]:
    steps = [step for turn in script.turns for step in turn.steps]
    ends = {step.call_id: step for step in steps if isinstance(step, CallEnd)}
    return {step.call_id: ends.get(step.call_id) for step in steps if isinstance(step, CallStart)}


@pytest.fixture
def file() -> ClaudeFile:
    return ClaudeFile()


def test_unknown_records_blocks_and_kinds_are_counted_never_an_error(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.add("brand_new_record", payload=1)
    file.add("system", subtype="brand_new", parent=file.last)
    file.add("attachment", attachment={"type": "brand_new"})
    file.reply({"type": "brand_new_block", "x": 1}, "said")
    file.raw(b'{"nothing":"known","sessionId":"session-1"}')
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert script.report.unknown == {
        "record brand_new_record": 1,
        "system / brand_new": 1,
        "attachment / brand_new": 1,
        "block brand_new_block": 1,
        "record (no type)": 1,
    }
    assert texts(script) == ["said"]


def test_a_reply_over_many_lines_is_one_reply_with_usage_counted_once(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    reply = {"id": "msg_a"}
    file.reply({"type": "thinking", "thinking": "hm"}, **reply, usage={"input_tokens": 7, "output_tokens": 1})
    file.reply("first", **reply, usage={"input_tokens": 7, "output_tokens": 1})
    file.call("c1", **reply, usage={"input_tokens": 7, "output_tokens": 1})
    file.result("c1")
    file.call("c2", **reply, usage={"input_tokens": 7, "output_tokens": 1})
    file.result("c2")
    file.reply("second", **reply, usage={"input_tokens": 7, "output_tokens": 42})
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    kinds = [type(step).__name__ for step in script.turns[0].steps]
    assert kinds == ["Text", "Text", "CallStart", "CallEnd", "CallStart", "CallEnd", "Text"]
    assert (script.usage.input_tokens, script.usage.output_tokens) == (7, 42)
    assert script.models == {"claude-x": 1}


def test_two_empty_thinking_lines_of_one_millisecond_are_both_kept_in_the_tree(
    tmp_path: Path, file: ClaudeFile
) -> None:
    file.user("go")
    empty = {"type": "thinking", "thinking": "", "signature": "x"}
    file.reply(empty, id="msg_a", at=5)
    file.reply(empty, id="msg_a", at=5)
    file.reply("said", id="msg_a", at=6)
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert script.report.notes["reasoning that the provider withheld"] == 2
    assert "parent not in the file" not in script.report.notes
    assert texts(script) == ["said"]


def test_the_chain_goes_through_progress_and_attachments(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.call("c1")
    file.add("progress", data={"type": "bash_progress", "output": "x"}, toolUseID="c1")
    file.result("c1")
    file.add("attachment", attachment={"type": "task_reminder"})
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert len(script.turns) == 1
    assert script.report.notes == {}
    assert script.report.folded["progress / bash_progress"] == 1


def test_parallel_calls_are_no_fork(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    one = file.call("c1", id="msg_a")
    two = file.call("c2", id="msg_a")
    file.result("c2", "second", parent=two)
    last = file.last
    file.result("c1", "first", parent=one)
    file.reply("done", parent=last)
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert script.report.branches == []
    assert {name: end and end.output["text"] for name, end in calls(script).items()} == {"c1": "first", "c2": "second"}
    assert texts(script) == ["done"]


def test_a_second_prompt_under_one_ancestor_is_a_rewind_and_the_later_branch_lives(
    tmp_path: Path, file: ClaudeFile
) -> None:
    file.user("start")
    fork = file.reply("ready")
    file.user("the wrong way")
    file.reply("wrong answer")
    file.user("the right way", parent=fork)
    file.reply("right answer")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["start", "the right way"]
    assert texts(script) == ["ready", "right answer"]
    assert script.report.branches == ["the wrong way"]
    assert script.report.folded["record of an abandoned branch"] == 2


def test_broken_parents_end_and_are_reported(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go", uuid="a", parent="missing")
    file.reply("self", uuid="b", parent="b")
    file.reply("cycle one", uuid="c", parent="d")
    file.reply("cycle two", uuid="d", parent="c")
    file.reply("child first", uuid="e", parent="f")
    file.reply("its parent", uuid="f", parent="a")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    notes = script.report.notes
    assert notes["parent not in the file"] == 1
    assert notes["record that is its own parent"] == 1
    assert notes["cycle of parents"] == 1
    assert texts(script) == ["self", "cycle one", "cycle two", "child first", "its parent"]


def test_a_compaction_is_one_mark_and_no_prompt(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("before")
    file.reply("early")
    last = file.last
    file.add(
        "system", subtype="compact_boundary", parent=None, logicalParentUuid=last, compactMetadata={"trigger": "auto"}
    )
    file.user("This session is being continued from a previous conversation.", isCompactSummary=True)
    file.reply("going on")
    file.user("after")
    file.reply("late")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["before", "after"]
    marks = [step for turn in script.turns for step in turn.steps if isinstance(step, Compaction)]
    assert [mark.summary[:12] for mark in marks] == ["This session"]
    assert texts(script) == ["early", "going on", "late"]


def test_a_compaction_by_hand_is_a_turn_of_its_own(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("before")
    file.reply("early")
    file.add("system", subtype="compact_boundary", parent=None, compactMetadata={"trigger": "manual"})
    file.user("This session is being continued from a previous conversation.", isCompactSummary=True)
    file.user("<command-name>/compact</command-name>\n<command-message>compact</command-message>")
    file.user("<local-command-stdout>Compacted</local-command-stdout>")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["before", "/compact"]


def test_foreign_summaries_are_no_title(tmp_path: Path, file: ClaudeFile) -> None:
    for number in range(16):
        file.raw(json.dumps({"type": "summary", "summary": f"Other {number}", "leafUuid": f"x{number}"}).encode())
    file.user("go")
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert script.title == ""
    assert script.report.folded["summary of another session"] == 16


def test_a_summary_of_this_session_is_its_title_and_a_given_title_wins(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    leaf = file.reply("done")
    file.raw(json.dumps({"type": "summary", "summary": "Mine", "leafUuid": leaf}).encode())
    assert read_transcript(file.write(tmp_path / "s.jsonl")).title == "Mine"
    file.raw(json.dumps({"type": "custom-title", "customTitle": "Named", "sessionId": "session-1"}).encode())
    assert read_transcript(file.write(tmp_path / "s.jsonl")).title == "Named"


def test_unpaired_calls_and_results_are_shown_as_such(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.call("lonely")
    file.call("twice")
    file.result("twice", "one")
    file.result("twice", "one")
    file.result("twice", "two")
    file.result("orphan", "who asked")
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    found = calls(script)
    assert found["lonely"] is None
    assert found["twice"] is not None and found["twice"].output == {"text": "one", "updates": [{"text": "two"}]}
    assert found["orphan"] is not None and found["orphan"].output == {"text": "who asked"}
    assert script.report.notes == {"result without call": 1, "second result of a call": 1, "call without result": 1}
    assert script.report.folded["repeated result"] == 1
    assert script.turns[0].outcome == "completed"


def test_interrupted_refused_failed_and_retried_are_four_outcomes(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("interrupted")
    file.reply("half an")
    file.user([{"type": "text", "text": "[Request interrupted by user]"}])
    file.user("refused")
    file.call("c1")
    file.result("c1", "The user doesn't want to proceed with this tool use.", error=True)
    file.reply("understood")
    file.user("failed")
    synthetic = {"model": "<synthetic>", "isApiErrorMessage": True}
    file.reply("API Error: 400", **synthetic)
    file.user("retried")
    file.add("system", subtype="api_error", error={"message": "529"}, retryAttempt=1, maxRetries=10)
    file.add("system", subtype="api_error", error={"message": "529"}, retryAttempt=2, maxRetries=10)
    file.reply("answered")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [(turn.text, turn.outcome, turn.error) for turn in script.turns] == [
        ("interrupted", "interrupted", ""),
        ("refused", "completed", ""),
        ("failed", "failed", "API Error: 400"),
        ("retried", "completed", ""),
    ]
    refused = calls(script)["c1"]
    assert refused is not None and refused.failed
    retries = [step for step in script.turns[3].steps if isinstance(step, Notice)]
    assert [(notice.kind, notice.detail) for notice in retries] == [("transport_retry", "529")]


def test_retries_without_an_answer_fail_the_turn(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.add("system", subtype="api_error", error={"formatted": "529 Overloaded"}, retryAttempt=10, maxRetries=10)
    file.user("again")
    file.reply("answered")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [(turn.outcome, turn.error) for turn in script.turns] == [("failed", "529 Overloaded"), ("completed", "")]


def test_text_the_harness_made_is_no_prompt(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("a real prompt\n<system-reminder>be nice</system-reminder>")
    file.reply("done")
    file.user("injected", isMeta=True)
    file.user("<local-command-stdout>x</local-command-stdout>")
    file.user("Caveat: The messages below were generated by the user while running local commands.")
    file.user("<task-notification>ended</task-notification>", origin={"kind": "task-notification"})
    file.user("<system-reminder>only this</system-reminder>")
    file.user("why does my code say `<command-name>`?")
    file.reply("because")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["a real prompt", "why does my code say `<command-name>`?"]


def test_a_slash_command_that_the_model_answers_is_what_the_person_typed(tmp_path: Path, file: ClaudeFile) -> None:
    file.user(
        "<command-message>review is running…</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>src</command-args>"
    )
    file.user([{"type": "text", "text": "# Review the code"}], isMeta=True)
    file.reply("Looks good.")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["/review src"]
    assert not script.turns[0].invented


def test_a_local_command_and_its_output_are_a_notice(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("<command-name>/cost</command-name>")
    file.user("<local-command-stdout>$0.01</local-command-stdout>")
    file.user("go")
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["go"]
    notice = script.turns[0].steps[0]
    assert isinstance(notice, Notice) and (notice.title, notice.detail) == ("/cost", "$0.01")


def test_a_session_without_a_prompt_gets_a_turn_that_says_so(tmp_path: Path, file: ClaudeFile) -> None:
    file.reply("going on")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [(turn.text, turn.invented) for turn in script.turns] == [("(session continued)", True)]


def test_synthetic_replies_are_notices_without_model_or_tokens(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.reply("Limit reached.", model="<synthetic>", usage={"input_tokens": 99, "output_tokens": 99})
    file.reply("No response requested.", model="<synthetic>")
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [step.title for step in script.turns[0].steps if isinstance(step, Notice)] == ["Limit reached."]
    assert texts(script) == ["done"]
    assert script.models == {"claude-x": 1}
    assert script.usage.output_tokens == 1


def test_time_never_goes_back_and_is_otherwise_kept(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go", at=10)
    file.call("c1", at=12.345)
    file.result("c1", at=11)
    file.reply("untimed", timestamp="not a time")
    file.user("three days later", timestamp="2026-05-04T10:00:00.000Z")
    file.reply("done", timestamp="2026-05-04T10:00:01.500Z")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    first, second = script.turns
    assert [step.at - first.at for step in first.steps] == [2345, 2345, 2345]
    assert second.at - first.at == 3 * 86_400_000 - 10_000
    assert [step.at - second.at for step in second.steps] == [1500]
    assert script.report.notes["time goes back"] == 1


def test_two_sessions_and_two_versions_in_one_file(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.reply("done")
    file.user("resumed", sessionId="session-2", version="2.1.60")
    file.reply("again", sessionId="session-2", version="2.1.60")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert script.session_ids == ["session-1", "session-2"]
    assert script.session_id == "session-2"
    assert script.version == "2.1.60"
    assert len(script.turns) == 2


def test_copied_records_are_shown_once(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go", uuid="a")
    file.reply("done", uuid="b", id="m")
    file.user("go", uuid="a", sessionId="session-2", parent=None)
    file.reply("done", uuid="b", id="m", sessionId="session-2")
    file.user("next", sessionId="session-2")
    file.reply("more")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["go", "next"]
    assert script.report.folded["repeated record"] == 2


def test_a_queued_prompt_that_was_taken_back_is_visible(tmp_path: Path, file: ClaudeFile) -> None:
    def queue(operation: str, **members: str) -> None:
        record = {"type": "queue-operation", "operation": operation, "sessionId": "session-1", **members}
        file.raw(json.dumps({**record, "timestamp": START.format(2.5)}).encode())

    file.user("go")
    queue("enqueue", content="never mind")
    queue("remove")
    queue("enqueue", content="and this")
    queue("dequeue")
    file.reply("done")
    file.user("and this")
    file.reply("done too")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    notices = [step for turn in script.turns for step in turn.steps if isinstance(step, Notice)]
    assert [(notice.kind, notice.detail) for notice in notices] == [("queued_prompt", "never mind")]
    assert [turn.text for turn in script.turns] == ["go", "and this"]


def test_a_prompt_typed_while_the_agent_works_joins_the_turn(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.call("c1")
    file.result("c1")
    file.add("attachment", attachment={"type": "queued_command", "prompt": "only Python", "commandMode": "prompt"})
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    guides = [step for step in script.turns[0].steps if isinstance(step, Guide)]
    assert [guide.content for guide in guides] == [[{"type": "text", "text": "only Python"}]]


def test_rich_results_give_output_and_diffs(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.call("bash", "Bash", {"command": "make"})
    file.result("bash", "out\nerr", toolUseResult={"stdout": "out", "stderr": "err", "interrupted": False})
    file.call("edit", "Edit", {"file_path": "/home/dev/project/a.py"})
    patch = [{"oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 2, "lines": [" a", "-b", "+c"]}]
    rich = {"filePath": "/home/dev/project/a.py", "structuredPatch": patch, "originalFile": "x" * 1000}
    file.result("edit", "updated", toolUseResult=rich)
    file.call("write", "Write", {"file_path": "/home/dev/project/b.py", "content": "new\n"})
    created = {"type": "create", "filePath": "/home/dev/project/b.py", "content": "new\n", "structuredPatch": []}
    file.result("write", "created", toolUseResult=created)
    file.call("bad", "Edit", {"file_path": "/home/dev/project/c.py"})
    wrapped = "<tool_use_error>String to replace not found</tool_use_error>"
    file.result("bad", wrapped, error=True, toolUseResult="Error: String to replace not found")
    file.reply("done")
    found = calls(read_transcript(file.write(tmp_path / "s.jsonl")))
    bash, edit, write, bad = found["bash"], found["edit"], found["write"], found["bad"]
    assert bash and bash.output == {"stdout": "out", "stderr": "err", "text": "out\nerr"}
    assert edit and edit.changes[0].diff == "@@ -3,2 +3,2 @@\n a\n-b\n+c\n"
    assert "originalFile" not in json.dumps(edit.output)
    assert write and (write.changes[0].change, write.changes[0].content) == ("add", "new\n")
    assert bad and (bad.failed, bad.error, bad.changes) == (True, "String to replace not found", [])


def test_images_of_prompts_and_results_stay_inline(tmp_path: Path, file: ClaudeFile) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    file.user([{"type": "text", "text": "what is this?"}, image])
    file.call("c1", "Read", {"file_path": "/home/dev/project/a.png"})
    file.result("c1", [image])
    file.reply("a dot")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    block = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
    assert script.turns[0].prompt == [{"type": "text", "text": "what is this?"}, block]
    end = calls(script)["c1"]
    assert end is not None and end.output["content"] == [block]


def child_story(file: ClaudeFile, prompt: str, **members: object) -> None:
    side = {"isSidechain": True, **members}
    file.user(prompt, parent=None, **side)
    file.call("inner", id="msg_child", **side)
    file.result("inner", **side)
    file.reply("child says", **side)


def nested(script: Script) -> list[tuple[str, str]]:
    return [(type(step).__name__, getattr(step, "owner", "")) for step in script.turns[0].steps]


NESTED = [
    ("CallStart", ""),
    ("ChildStart", ""),
    ("CallStart", "kid"),
    ("CallEnd", "kid"),
    ("Text", "kid"),
    ("ChildEnd", ""),
    ("CallEnd", ""),
    ("Text", ""),
]


def test_an_inline_sidechain_is_nested_under_the_call_with_its_prompt(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    call = file.call("task", "Task", {"prompt": "look around"})
    child_story(file, "look around", agentId="kid")
    file.result("task", "found", parent=call)
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert nested(script) == NESTED


@pytest.mark.parametrize("place", ["session-1/subagents/agent-kid.jsonl", "agent-kid.jsonl"])
def test_a_subagent_file_is_nested_under_the_call_that_names_it(tmp_path: Path, file: ClaudeFile, place: str) -> None:
    file.user("go", at=1)
    file.call("task", "Agent", {"prompt": "look around"}, at=2)
    file.result("task", "found", at=8, toolUseResult={"agentId": "kid", "status": "completed"})
    file.reply("done", at=9)
    inner = ClaudeFile()
    inner._count = 2
    child_story(inner, "look around", agentId="kid")
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    inner.write(path)
    script = read_transcript(file.write(tmp_path / "session-1.jsonl"))
    assert nested(script) == NESTED
    assert script.report.notes["child session"] == 1


def test_a_background_child_goes_on_after_the_result_of_its_call(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go", at=1)
    file.call("task", "Agent", {"prompt": "look", "run_in_background": True}, at=2)
    file.result("task", "launched", at=3, toolUseResult={"agentId": "kid", "isAsync": True})
    file.reply("it works", at=4)
    inner = ClaudeFile()
    inner._count = 4
    child_story(inner, "look", agentId="kid")
    path = inner.write(tmp_path / "agent-kid.jsonl")
    script = read_claude(file.write(tmp_path / "session-1.jsonl"), children=[path])
    names = [name for name, _ in nested(script)]
    assert names.index("ChildEnd") > names.index("CallEnd")
    assert script.turns[0].steps[-1].at <= script.turns[0].ended
    assert script.report.changed["time of a background child moved to the end of the turn"] > 0


def test_a_missing_child_is_an_ordinary_call(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.call("task", "Task", {"prompt": "look"})
    file.result("task", "found", toolUseResult={"agentId": "gone"})
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert not any(isinstance(step, ChildStart | ChildEnd) for step in script.turns[0].steps)
    assert calls(script)["task"] is not None


def test_a_child_without_its_call_is_counted(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    child_story(file, "nobody asked for this", agentId="kid")
    file.user("more", parent=None)
    file.reply("done")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert script.report.notes["child session without its call"] == 1


def test_a_file_of_metadata_only_makes_no_session_and_says_why(tmp_path: Path, file: ClaudeFile) -> None:
    file.raw(b'{"type":"summary","summary":"Other","leafUuid":"x"}')
    file.raw(b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}')
    with pytest.raises(InputRejected) as refused:
        read_transcript(file.write(tmp_path / "s.jsonl"))
    assert refused.value.code == "transcript_no_conversation"
    assert "file-history-snapshot" in refused.value.hint


def test_an_open_end_is_said(tmp_path: Path, file: ClaudeFile) -> None:
    file.user("go")
    file.call("c1")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert script.turns[0].outcome == "failed"
    assert script.turns[0].error == "The transcript ends before the turn does."


def test_the_same_text_twice_is_two_prompts(tmp_path: Path, file: ClaudeFile) -> None:
    for _ in range(2):
        file.user("go on")
        file.reply("went on")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["go on", "go on"]
    assert texts(script) == ["went on", "went on"]
