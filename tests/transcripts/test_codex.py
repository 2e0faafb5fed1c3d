"""Codex rollouts (transcript-formats §5, cases 24-28)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cassettes.transcripts.codex import read_codex
from cassettes.transcripts.codex_calls import changes_in_patch, read_call, read_output
from cassettes.transcripts.reading import read_transcript
from cassettes.transcripts.script import CallEnd, CallStart, Compaction, Guide, Notice, Script, Text
from tests.transcripts.making import RolloutFile


def texts(script: Script, kind: str = "assistant") -> list[str]:
    return [step.text for turn in script.turns for step in turn.steps if isinstance(step, Text) and step.kind == kind]


def calls(script: Script) -> dict[str, tuple[CallStart, CallEnd | None]]:
    steps = [step for turn in script.turns for step in turn.steps]
    ends = {step.call_id: step for step in steps if isinstance(step, CallEnd)}
    return {step.call_id: (step, ends.get(step.call_id)) for step in steps if isinstance(step, CallStart)}


@pytest.fixture
def file() -> RolloutFile:
    return RolloutFile()


def both_streams(file: RolloutFile, prompt: str = "fix it") -> None:
    file.said("user", "<environment_context>\n<cwd>/home/dev/project</cwd></environment_context>")
    file.said("user", prompt)
    file.event("user_message", message=prompt)
    file.event("agent_reasoning", text="**Looking**")
    file.event("agent_reasoning", text="**Fixing**")
    summary = [{"type": "summary_text", "text": "**Looking**"}, {"type": "summary_text", "text": "**Fixing**"}]
    file.item("reasoning", summary=summary, encrypted_content="x")
    file.event("agent_message", message="Done.")
    file.said("assistant", "Done.")


def test_each_prompt_reply_and_reasoning_once(tmp_path: Path, file: RolloutFile) -> None:
    both_streams(file)
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["fix it"]
    assert texts(script) == ["Done."]
    assert texts(script, "reasoning") == ["**Looking**", "**Fixing**"]


def test_a_file_with_only_items(tmp_path: Path, file: RolloutFile) -> None:
    file.said("user", "# AGENTS.md instructions for /home/dev")
    file.said("user", "fix it")
    file.item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    file.said("assistant", "Done.")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["fix it"]
    assert (texts(script), texts(script, "reasoning")) == (["Done."], ["hm"])


def test_a_file_with_only_events(tmp_path: Path, file: RolloutFile) -> None:
    file.event("user_message", message="fix it")
    file.event("agent_reasoning", text="hm")
    file.event("agent_message", message="Done.")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["fix it"]
    assert (texts(script), texts(script, "reasoning")) == (["Done."], ["hm"])


def test_the_same_prompt_sent_twice_is_two_prompts(tmp_path: Path, file: RolloutFile) -> None:
    both_streams(file, "go on")
    both_streams(file, "go on")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["go on", "go on"]
    assert texts(script) == ["Done.", "Done."]


def test_items_of_the_later_envelope(tmp_path: Path, file: RolloutFile) -> None:
    def item(kind: str, **members: Any) -> None:
        file.event("item_completed", turn_id="t1", item={"type": kind, **members})

    file.event("task_started", turn_id="t1")
    file.said("user", "fix it")
    item("UserMessage", id="u", content=[{"type": "text", "text": "fix it"}])
    file.item("function_call", name="exec_command", call_id="c1", arguments='{"cmd":"ls"}')
    item(
        "CommandExecution",
        id="c1",
        command=["/bin/bash", "-lc", "ls"],
        aggregated_output="a.py\n",
        exit_code=0,
        status="completed",
    )
    file.item("function_call_output", call_id="c1", output="Chunk ID: 1\nProcess exited with code 0\nOutput:\na.py\n")
    item("AgentMessage", id="m1", content=[{"type": "Text", "text": "Done."}])
    file.said("assistant", "Done.", id="m1")
    file.event("task_complete", turn_id="t1", last_agent_message="Done.")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [(turn.text, turn.provider_turn_id) for turn in script.turns] == [("fix it", "t1")]
    assert texts(script) == ["Done."]
    start, end = calls(script)["c1"]
    assert start.input["command"] == "ls"
    assert end is not None and end.output == {"stdout": "a.py\n", "exitCode": 0}


def test_a_prompt_into_the_running_task_steers_it(tmp_path: Path, file: RolloutFile) -> None:
    file.event("task_started", turn_id="t1")
    file.event("user_message", message="count files")
    file.event("agent_message", message="counting")
    file.event("user_message", message="only Python")
    file.event("agent_message", message="two")
    file.event("task_complete", turn_id="t1")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["count files"]
    assert [step.content for step in script.turns[0].steps if isinstance(step, Guide)] == [
        [{"type": "text", "text": "only Python"}]
    ]


def test_turn_outcomes(tmp_path: Path, file: RolloutFile) -> None:
    for number, end in enumerate(["ok", "aborted", "failed", "error"]):
        file.event("task_started", turn_id=f"t{number}")
        file.event("user_message", message=end)
        if end == "ok":
            file.event("agent_message", message="Done.")
            file.event("task_complete", turn_id=f"t{number}")
        elif end == "aborted":
            file.said("user", "<turn_aborted>\nThe user interrupted")
            file.event("turn_aborted", turn_id=f"t{number}", reason="interrupted")
        elif end == "failed":
            file.event("task_complete", turn_id=f"t{number}", error={"message": "Quota exceeded"})
        else:
            file.event("error", message="context window exceeded")
            file.event("task_complete", turn_id=f"t{number}")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [(turn.text, turn.outcome, turn.error) for turn in script.turns] == [
        ("ok", "completed", ""),
        ("aborted", "interrupted", ""),
        ("failed", "failed", "Quota exceeded"),
        ("error", "failed", "context window exceeded"),
    ]


def test_a_compaction_is_one_mark_and_repeats_nothing(tmp_path: Path, file: RolloutFile) -> None:
    file.event("task_started", turn_id="t1")
    file.event("user_message", message="go")
    file.said("assistant", "working")
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}]
    at = file.seconds + 1
    file.add("compacted", {"message": "what happened", "replacement_history": history}, at=at)
    file.add("event_msg", {"type": "context_compacted"}, at=at)
    file.said("assistant", "done")
    file.event("task_complete", turn_id="t1")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["go"]
    assert texts(script) == ["working", "done"]
    marks = [step for step in script.turns[0].steps if isinstance(step, Compaction)]
    assert [mark.summary for mark in marks] == ["what happened"]


OUTPUTS: list[tuple[Any, str, int | None, bool]] = [
    ("plain text", "plain text", None, False),
    ('{"output":"inner","metadata":{"exit_code":3,"duration_seconds":0.1}}', "inner", 3, True),
    ({"content": "object", "success": True}, "object", None, False),
    ({"content": "object", "success": False}, "object", None, True),
    ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", None, False),
    (None, "", None, False),
    ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nok\n", "ok\n", 0, False),
    ("Wall time: 1 seconds\nProcess exited with code 2\nOutput:\nbad", "bad", 2, True),
    ("Wall time: 0.8 seconds\naborted by user", "Wall time: 0.8 seconds\naborted by user", None, True),
    ('{"not":"an envelope"}', '{"not":"an envelope"}', None, False),
]


@pytest.mark.parametrize(("value", "text", "code", "failed"), OUTPUTS)
def test_output_in_every_form(value: Any, text: str, code: int | None, failed: bool) -> None:
    output = read_output(value)
    assert (output.text, output.exit_code, output.failed) == (text, code, failed)


def test_an_output_image_is_kept() -> None:
    output = read_output([{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}])
    assert output.images == [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]


PATCH = """*** Begin Patch
*** Add File: docs/a.md
+# A
*** Update File: b.py
*** Move to: c.py
@@
-old
+new
*** Delete File: d.txt
*** End Patch"""


def function(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "name": name, "arguments": json.dumps(arguments)}


CALLS: list[tuple[dict[str, Any], str, str, str]] = [
    (function("shell", command=["bash", "-lc", "ls -l"]), "command", "shell", "ls -l"),
    (function("shell", command=["git", "log"]), "command", "shell", "git log"),
    (function("exec_command", cmd="ls"), "command", "exec_command", "ls"),
    (function("shell_command", command="ls"), "command", "shell_command", "ls"),
    ({"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}}, "command", "local_shell", "ls"),
    (function("write_stdin", chars="y\n"), "command", "write_stdin", "y\n"),
    ({"type": "custom_tool_call", "name": "exec", "input": "await tools.x()"}, "command", "exec", "await tools.x()"),
    ({"type": "custom_tool_call", "name": "apply_patch", "input": PATCH}, "patch", "apply_patch", ""),
    (
        {"type": "function_call", "name": "shell", "arguments": json.dumps({"command": ["apply_patch", PATCH]})},
        "patch", "apply_patch", "",
    ),
    (
        {
            "type": "function_call", "name": "shell",
            "arguments": json.dumps({"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
        },
        "patch", "apply_patch", "",
    ),
    ({"type": "function_call", "name": "update_plan", "arguments": '{"plan":[]}'}, "plan", "update_plan", ""),
    ({"type": "function_call", "name": "view_image", "arguments": '{"path":"a.png"}'}, "image", "view_image", ""),
    ({"type": "function_call", "name": "mcp__git__log", "arguments": "{}"}, "mcp", "mcp__git__log", ""),
    ({"type": "function_call", "name": "spawn_agent", "arguments": "{}"}, "agent", "spawn_agent", ""),
    ({"type": "web_search_call", "action": {"query": "x"}}, "search", "web_search", ""),
    ({"type": "function_call", "name": "odd", "arguments": "{broken"}, "other", "odd", ""),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "tool", "name", "command"), CALLS)
def test_calls_under_every_name(payload: dict[str, Any], tool: str, name: str, command: str) -> None:
    call = read_call(payload)
    assert (call.tool, call.name, call.input.get("command", "")) == (tool, name, command)
    if name == "odd":
        assert call.input == {"text": "{broken"}
    if tool == "patch":
        assert call.patch.startswith("*** Begin Patch")


def test_a_patch_becomes_file_changes() -> None:
    added, updated, deleted = changes_in_patch(PATCH)
    assert (added.path, added.change, added.content) == ("docs/a.md", "add", "# A\n")
    assert (updated.path, updated.change, updated.move_path) == ("b.py", "update", "c.py")
    assert updated.diff == "*** Begin Patch\n*** Update File: b.py\n@@\n-old\n+new\n*** End Patch\n"
    assert (deleted.path, deleted.change) == ("d.txt", "delete")


def test_a_failed_patch_changes_nothing(tmp_path: Path, file: RolloutFile) -> None:
    file.said("user", "go")
    file.item("custom_tool_call", name="apply_patch", call_id="c1", input=PATCH)
    file.item("custom_tool_call_output", call_id="c1", output="apply_patch verification failed: no such file")
    file.said("assistant", "sorry")
    _, end = calls(read_transcript(file.write(tmp_path / "r.jsonl")))["c1"]
    assert end is not None and (end.failed, end.changes) == (True, [])


def test_tokens_count_once_though_events_repeat(tmp_path: Path, file: RolloutFile) -> None:
    def tokens(total: int) -> None:
        usage = {"input_tokens": total, "output_tokens": total // 10}
        file.event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})

    file.event("token_count", info=None)
    file.said("user", "go")
    tokens(100)
    tokens(100)
    file.said("assistant", "a")
    file.said("user", "more")
    tokens(250)
    tokens(250)
    file.said("assistant", "b")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert script.usage.input_tokens == 250
    assert [turn.usage.input_tokens for turn in script.turns] == [100, 150]


def fork(parent: RolloutFile, session: str) -> RolloutFile:
    """A child as older versions write it: the parent's records copied, stamped with the time of the fork."""
    child = RolloutFile(session, forked_from_id="parent")
    child.seconds = 20
    child.lines[0] = json.dumps({**json.loads(child.lines[0]), "timestamp": "2026-05-01T10:00:20.000Z"}).encode()
    for number, line in enumerate(parent.lines):
        record = json.loads(line)
        child.add(record["type"], record["payload"], at=20 + number / 1000)
    return child


@pytest.mark.parametrize("with_parent", [True, False])
def test_a_fork_shows_only_its_own_turns(tmp_path: Path, with_parent: bool) -> None:
    usage = {"total_token_usage": {"input_tokens": 500, "output_tokens": 5}}
    parent = RolloutFile("parent")
    both_streams(parent, "of the parent")
    parent.event("token_count", info=usage)
    child = fork(parent, "child")
    child.seconds = 30
    both_streams(child, "of the child")
    child.event("token_count", info={"total_token_usage": {"input_tokens": 530, "output_tokens": 8}})
    given = parent.write(tmp_path / "parent.jsonl") if with_parent else None
    script = read_codex(child.write(tmp_path / "child.jsonl"), parent=given)
    assert script.session_id == "child"
    assert [turn.text for turn in script.turns] == ["of the child"]
    assert script.usage.input_tokens == 30
    assert script.report.folded["record inherited from the parent session"] >= len(parent.lines)


def test_a_fork_that_copies_nothing_keeps_its_first_turn(tmp_path: Path) -> None:
    file = RolloutFile("child", forked_from_id="parent", history_mode="paginated")
    both_streams(file)
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["fix it"]


def test_child_rollouts_are_nested_under_the_call_that_spawned_them(tmp_path: Path, file: RolloutFile) -> None:
    file.said("user", "ask a helper")
    file.item("function_call", name="spawn_agent", call_id="c1", arguments='{"message":"look"}')
    file.event("collab_agent_spawn_end", call_id="c1", new_thread_id="kid", prompt="look")
    file.item("function_call_output", call_id="c1", output='{"agent_id":"kid"}')
    file.said("assistant", "asked", id="m")
    child = RolloutFile("kid", source={"subagent": {"thread_spawn": {"parent_thread_id": "thread-1"}}})
    child.said("user", "look")
    child.said("assistant", "seen")
    child.write(tmp_path / "rollout-kid.jsonl")
    script = read_transcript(file.write(tmp_path / "rollout-root.jsonl"))
    owners = [(type(step).__name__, getattr(step, "owner", "")) for step in script.turns[0].steps]
    assert ("ChildStart", "") in owners and ("Text", "kid") in owners and ("ChildEnd", "") in owners
    assert owners.index(("CallStart", "")) < owners.index(("ChildStart", ""))


def test_a_rollback_leaves_the_turns_and_says_so(tmp_path: Path, file: RolloutFile) -> None:
    both_streams(file, "one")
    file.event("thread_rolled_back", num_turns=1)
    both_streams(file, "two")
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert [turn.text for turn in script.turns] == ["one", "two"]
    assert [step.kind for turn in script.turns for step in turn.steps if isinstance(step, Notice)] == ["rollback"]


def test_a_prompt_out_of_an_editor_shows_the_request(tmp_path: Path, file: RolloutFile) -> None:
    prompt = "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nfix it\n"
    file.event("user_message", message=prompt)
    file.event("agent_message", message="Done.")
    turn = read_transcript(file.write(tmp_path / "r.jsonl")).turns[0]
    assert (turn.text, turn.display) == (prompt, "fix it")


def test_the_form_before_the_envelope(tmp_path: Path) -> None:
    lines = [
        {"id": "old", "timestamp": "2025-08-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
    ]
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    script = read_transcript(path)
    assert script.session_id == "old"
    assert [turn.text for turn in script.turns] == ["hello"]
    assert texts(script) == ["hi"]
    assert script.report.notes["reasoning that the provider withheld"] == 1


def test_unknown_records_items_and_events_are_counted(tmp_path: Path, file: RolloutFile) -> None:
    both_streams(file)
    file.add("brand_new", {"type": "x"})
    file.item("brand_new_item")
    file.event("brand_new_event")
    file.event("item_completed", item={"type": "BrandNew"})
    script = read_transcript(file.write(tmp_path / "r.jsonl"))
    assert script.report.unknown == {
        "record brand_new": 1,
        "item brand_new_item": 1,
        "event brand_new_event": 1,
        "item BrandNew": 1,
    }
