"""Real files: our own captures, and the shared samples where they lie (transcript-formats §8, T1-T11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from cassettes.core.errors import InputRejected
from cassettes.transcripts.claude import read_claude
from cassettes.transcripts.claude_stream import read_claude_stream
from cassettes.transcripts.codex import read_codex
from cassettes.transcripts.reading import read_transcript
from cassettes.transcripts.script import ChildEnd, ChildStart, Compaction, Guide, Script, Text

CAPTURED = Path(__file__).parent.parent / "data" / "providers"
SAMPLES = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "transcripts"


def shared(name: str) -> Path | None:
    path = SAMPLES / name
    if not path.exists():
        print(f"the shared sample {name} is not here")
        return None
    return path


def texts(script: Script) -> list[str]:
    return [step.text for turn in script.turns for step in turn.steps if isinstance(step, Text)]


def check_order(script: Script) -> None:
    """Playback time never goes back, inside a turn and from one to the next."""
    now = 0
    for turn in script.turns:
        assert turn.at >= now
        now = turn.at
        for step in turn.steps:
            assert step.at >= now
            now = step.at
        assert turn.ended >= now
        now = turn.ended


@pytest.mark.parametrize("path", sorted(CAPTURED.rglob("*.jsonl")), ids=lambda path: path.stem)
def test_every_capture_is_read(path: Path) -> None:
    script = read_transcript(path)
    check_order(script)
    assert script.turns
    assert script.report.unknown == {}
    assert script.report.problems == []
    assert script.cwd == "/home/dev/project"


def test_every_shared_sample_is_read_or_refused_with_a_reason() -> None:
    files = sorted(SAMPLES.rglob("*.*json*"))
    if not files:
        print("the shared samples are not here")
    for path in files:
        try:
            check_order(read_transcript(path))
        except InputRejected as refused:
            assert refused.code in {"transcript_no_conversation", "transcript_format_unsupported"}, path
            assert refused.place.file == path.name


def test_captured_coding_session() -> None:
    script = read_transcript(CAPTURED / "claude-transcript-coding.jsonl")
    assert [turn.text for turn in script.turns] == [
        "The tests fail. Find out why and fix it.",
        "Add usage docs, drop the README.",
        "What is this?",
        "And dot.png in the project?",
    ]
    assert script.turns[0].at == 1796136446896
    assert [turn.outcome for turn in script.turns] == ["completed"] * 4
    assert script.turns[2].prompt[1]["type"] == "image"


def test_captured_rollout_of_the_same_scenario() -> None:
    script = read_transcript(CAPTURED / "codex-rollout-coding.jsonl")
    assert [turn.text for turn in script.turns] == [
        "The tests fail. Find out why and fix it.",
        "Add usage docs, drop the README.",
    ]
    assert len(texts(script)) == len(set(texts(script))) == 6


@pytest.mark.parametrize("name", ["claude-transcript-interrupt", "codex-rollout-interrupt"])
def test_captured_interrupts_and_steering(name: str) -> None:
    script = read_transcript(CAPTURED / f"{name}.jsonl")
    outcomes = {turn.text: turn.outcome for turn in script.turns}
    assert outcomes["Tell me a long story"] == outcomes["Run the slow command"] == "interrupted"
    assert outcomes["Count the files"] == outcomes["Go on"] == "completed"
    steered = next(turn for turn in script.turns if turn.text == "Count the files")
    assert [step.content[0]["text"] for step in steered.steps if isinstance(step, Guide)] == ["Only Python files"]


def test_captured_errors() -> None:
    script = read_transcript(CAPTURED / "codex-rollout-errors.jsonl")
    outcomes = {turn.text: turn.outcome for turn in script.turns}
    assert outcomes == {
        "Server error": "completed",
        "Cut stream": "completed",
        "Rate limit": "completed",
        "Context": "failed",
        "Quota": "failed",
        "Bad request": "failed",
        "Auth": "completed",
        "Bad tools": "completed",
    }


@pytest.mark.parametrize("name", ["claude-transcript-misc", "codex-rollout-control"])
def test_captured_compaction_by_hand(name: str) -> None:
    script = read_transcript(CAPTURED / f"{name}.jsonl")
    turn = next(turn for turn in script.turns if turn.text == "/compact")
    assert [type(step) for step in turn.steps] == [Compaction]


def test_captured_claude_subagents() -> None:
    script = read_claude(CAPTURED / "claude-transcript-subagent.jsonl")
    check_order(script)
    starts = [step for turn in script.turns for step in turn.steps if isinstance(step, ChildStart)]
    assert [start.prompt[:8] for start in starts] == ["HELPER-1", "HELPER-2", "HELPER-3"]
    assert [start.background for start in starts] == [False, False, True]
    said = {
        step.owner: step.text for turn in script.turns for step in turn.steps if isinstance(step, Text) and step.owner
    }
    assert set(said.values()) == {"calc.py and tests/test_calc.py", "2 tests", "All is well."}


def test_captured_codex_children() -> None:
    script = read_codex(CAPTURED / "codex-sessions/rollout-subagent.jsonl")
    check_order(script)
    steps = script.turns[0].steps
    assert sum(isinstance(step, ChildStart) for step in steps) == sum(isinstance(step, ChildEnd) for step in steps) == 2
    assert "child session without its call" not in script.report.notes


def test_t1_no_message_twice() -> None:
    path = shared("claude/v1.0.51-dup-assistant.jsonl")
    if path is not None:
        said = texts(read_transcript(path))
        assert len(said) == len(set(said)) == 2


def test_t2_order_of_the_file_and_time_forward() -> None:
    path = shared("claude/v2.0.67-timestamps-out-of-order.jsonl")
    if path is not None:
        script = read_transcript(path)
        check_order(script)
        assert script.report.branches == []
        assert len(script.turns) == 1


def test_t3_foreign_summaries_make_no_content() -> None:
    for name in ("claude/v1.0.96-98-summaries-foreign.jsonl", "claude/v2.0.28-sixteen-summaries.jsonl"):
        path = shared(name)
        if path is not None:
            script = read_transcript(path)
            assert not any("summary" in turn.text.lower() for turn in script.turns)
    path = shared("claude/v2.0.28-sixteen-summaries.jsonl")
    if path is not None:
        script = read_transcript(path)
        assert script.title == ""
        assert script.report.folded["summary of another session"] == 16


def test_t4_the_child_session_lies_under_its_call() -> None:
    path = shared("claude/v2.1.33-subagent/50a7220d-7250-46f3-b38e-b716ce25032e.jsonl")
    if path is not None:
        script = read_transcript(path)
        starts = [step for step in script.turns[0].steps if isinstance(step, ChildStart)]
        assert [start.child for start in starts] == ["a21e2f5"]
        assert any(getattr(step, "owner", "") == "a21e2f5" for step in script.turns[0].steps)


def test_t5_interrupted_turns_make_no_prompt_of_the_mark() -> None:
    for name in ("claude/v1.0.51-permission-interrupt.jsonl", "claude/v2.1.29-interrupted.jsonl"):
        path = shared(name)
        if path is not None:
            script = read_transcript(path)
            assert any(turn.outcome == "interrupted" for turn in script.turns)
            assert not any(turn.text.startswith("[Request interrupted") for turn in script.turns)


def test_t6_unknown_types_are_counted() -> None:
    path = shared("claude/v2.1-schema-drift.jsonl")
    if path is not None:
        assert read_transcript(path).report.unknown == {"record tool_use": 1, "record tool_result": 1}
    path = shared("claude/v2.1.183-record-types.jsonl")
    if path is not None:
        report = read_transcript(path).report
        assert sum(report.folded.values()) + sum(report.unknown.values()) > 10


def test_t7_a_compaction_mark_each() -> None:
    for name in ("claude/v2.0.76-compact-boundary.jsonl", "codex/v0.77-compacted.jsonl"):
        path = shared(name)
        if path is not None:
            steps = [step for turn in read_transcript(path).turns for step in turn.steps]
            assert sum(isinstance(step, Compaction) for step in steps) == 1


def test_t8_a_file_of_metadata_makes_no_session() -> None:
    path = shared("codex/v0.63-meta-only.jsonl")
    if path is not None:
        with pytest.raises(InputRejected) as refused:
            read_transcript(path)
        assert refused.value.code == "transcript_no_conversation"


def test_t9_the_fork_shows_only_its_own_turns() -> None:
    path = shared("codex/fork-archived/child.jsonl")
    if path is not None:
        script = read_codex(path, parent=path.with_name("parent.jsonl"))
        assert script.session_id == "child-session"
        assert script.turns == []


def test_t10_stream_logs() -> None:
    path = shared("claude-stream/crlf-lines.jsonl")
    if path is not None:
        assert read_transcript(path).report.problems == []
    path = shared("claude-stream/v2.0.75-partial-events-two-sessions.jsonl")
    if path is not None:
        first, sessions = read_claude_stream(path, started=1)
        assert len(sessions) == 2
        said = texts(first)
        assert len(said) == len(set(said))


def test_t11_two_connections_with_the_same_ids() -> None:
    path = shared("acp/two-connections-recorded.ndjson")
    if path is not None:
        script = read_transcript(path)
        assert len(script.session_ids) == 2
        assert [step.kind for step in script.turns[0].steps if isinstance(step, Text)] == ["assistant"]
