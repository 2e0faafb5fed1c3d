"""Logs of the Agent Client Protocol become Cassettes of the third provider (transcript-formats §7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.store import ArtifactStore
from cassettes.playback.headless import replay
from cassettes.transcripts.importing import import_transcript
from cassettes.transcripts.reading import read_transcript
from cassettes.transcripts.script import CallEnd, CallStart, Script, Text
from tests.samples import SHARED

JsonObject = dict[str, Any]
CALL = {"toolCallId": "c-1", "title": "Run the tests", "kind": "execute", "rawInput": {"command": "make test"}}
DIFF = {"type": "diff", "path": "/home/dev/project/a.py", "oldText": "a\n", "newText": "b\n"}


class Log:
    """Writes a log line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seconds = 0

    def add(self, direction: str, **message: Any) -> None:
        """One message in an envelope."""
        self.seconds += 1
        at = f"2026-05-01T10:00:{self.seconds:02}.000Z"
        self.lines.append(json.dumps({"seq": self.seconds, "at": at, "direction": direction, "message": message}))

    def open(self, session: str = "s-1") -> None:
        """A connection with a session."""
        self.add("outbound", jsonrpc="2.0", id=0, method="initialize", params={"protocolVersion": 1})
        self.add("inbound", jsonrpc="2.0", id=0, result={"protocolVersion": 1})
        self.add("outbound", jsonrpc="2.0", id=1, method="session/new", params={"cwd": "/home/dev/project"})
        self.add("inbound", jsonrpc="2.0", id=1, result={"sessionId": session})

    def prompt(self, text: str, number: int = 2, session: str = "s-1") -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        self.add("outbound", jsonrpc="2.0", id=number, method="session/prompt", params=params)

    def update(self, what: str, session: str = "s-1", **members: Any) -> None:
        params = {"sessionId": session, "update": {"sessionUpdate": what, **members}}
        self.add("inbound", jsonrpc="2.0", method="session/update", params=params)

    def said(self, text: str, what: str = "agent_message_chunk", **members: Any) -> None:
        self.update(what, content={"type": "text", "text": text}, **members)

    def end(self, number: int = 2, **answer: Any) -> None:
        self.add("inbound", jsonrpc="2.0", id=number, **(answer or {"result": {"stopReason": "end_turn"}}))

    def write(self, folder: Path) -> Path:
        path = folder / "log.ndjson"
        path.write_text("\n".join(self.lines) + "\n")
        return path


@pytest.fixture
def log() -> Log:
    """A log with an open session."""
    made = Log()
    made.open()
    return made


def work(log: Log) -> None:
    """A Turn with everything in it."""
    log.prompt("Make the tests pass")
    log.said("Let me ", "agent_thought_chunk")
    log.said("see.", "agent_thought_chunk")
    log.said("I'll run ")
    log.said("the tests.")
    log.update("plan", entries=[{"content": "Run", "status": "in_progress", "priority": "high"}])
    log.update("tool_call", **CALL, status="pending")
    log.update("tool_call_update", toolCallId="c-1", status="in_progress")
    output = [{"type": "content", "content": {"type": "text", "text": "1 failed"}}]
    log.update("tool_call_update", toolCallId="c-1", status="failed", content=output, rawOutput={"exitCode": 1})
    log.update("tool_call", toolCallId="c-2", title="Edit a.py", kind="edit", status="completed", content=[DIFF])
    log.update("available_commands_update", availableCommands=[])
    log.said("Done.")
    log.end()


def imported(log: Log, folder: Path) -> CassetteFolder:
    """The Cassette of a log; it replays equal."""
    made = import_transcript(log.write(folder), ArtifactStore(folder / "home"))
    report = replay(made.path)
    assert report.equal, report.summary
    return CassetteFolder(made.path)


def steps(script: Script) -> list[str]:
    """What happens, in words."""
    told = []
    for step in script.turns[0].steps:
        if isinstance(step, Text):
            told.append(f"{step.kind}: {step.text}")
        elif isinstance(step, CallStart):
            told.append(f"call {step.name}")
        elif isinstance(step, CallEnd):
            told.append("failed" if step.failed else "done")
    return told


def test_a_log_is_read_with_joined_chunks_calls_and_plans(log: Log, tmp_path: Path) -> None:
    work(log)
    script = read_transcript(log.write(tmp_path))
    assert (script.provider, script.session_id, script.cwd) == ("acp", "s-1", "/home/dev/project")
    assert steps(script) == [
        "reasoning: Let me see.",
        "assistant: I'll run the tests.",
        "call plan",
        "call Run the tests",
        "failed",
        "call Edit a.py",
        "done",
        "assistant: Done.",
    ]
    assert script.report.unknown == {}
    assert script.report.folded == {"update available_commands_update": 1}


def test_its_cassette_replays_equal_and_holds_what_the_agent_did(log: Log, tmp_path: Path) -> None:
    work(log)
    session = imported(log, tmp_path).expected_state().agent.root
    assert (session.provider, session.provider_session_id) == ("acp", "s-1")
    assert [turn.outcome for turn in session.turns] == ["completed"]
    by_title = {one.payload.get("title"): one for one in session.messages if one.call_id}
    assert by_title["Run the tests"].status == "failed"
    assert by_title["Run the tests"].payload["output"] == {"text": "1 failed", "exitCode": 1}
    files = session.turns[0].file_changes
    assert files is not None
    assert [one["path"] for one in files["files"]] == ["${REPLAY_CWD}/a.py"]
    texts = [
        one.payload["text"] for one in session.messages if one.kind in ("text", "reasoning") and one.role != "user"
    ]
    assert texts == ["Let me see.", "I'll run the tests.", "Done."]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"result": {"stopReason": "cancelled"}}, "canceled"),
        ({"error": {"code": -32603, "message": "The model is gone"}}, "failed"),
        ({"result": {"stopReason": "refusal"}}, "failed"),
        ({"result": {"stopReason": "max_tokens"}}, "completed"),
    ],
)
def test_every_end_of_a_turn_is_kept(answer: JsonObject, outcome: str, log: Log, tmp_path: Path) -> None:
    log.prompt("Go")
    log.said("Working")
    log.end(**answer)
    (turn,) = imported(log, tmp_path).expected_state().agent.root.turns
    assert turn.outcome == outcome


def test_a_log_that_is_cut_off_ends_its_turn_as_failed(log: Log, tmp_path: Path) -> None:
    log.prompt("Go")
    log.said("Working")
    script = read_transcript(log.write(tmp_path))
    assert (script.turns[0].outcome, script.report.notes) == ("failed", {"turn that does not end in the file": 1})


def test_several_turns_follow_each_other(log: Log, tmp_path: Path) -> None:
    for number, text in enumerate(("One", "Two", "Three"), 2):
        log.prompt(text, number)
        log.said(f"Answer to {text}")
        log.end(number)
    assert len(imported(log, tmp_path).expected_state().agent.root.turns) == 3


def test_of_several_connections_with_the_same_ids_one_session_is_imported(log: Log, tmp_path: Path) -> None:
    log.prompt("First")
    log.end()
    log.open("s-2")
    log.prompt("Second", session="s-2")
    log.said("hello", session="s-2")
    log.end()
    log.prompt("Third", 3, session="s-2")
    log.end(3)
    path = log.write(tmp_path)
    script = read_transcript(path)
    assert (script.session_id, len(script.turns)) == ("s-2", 2)
    assert script.report.notes == {"another session of the log, which was not imported": 1}
    assert read_transcript(path, session_id="s-1").turns[0].text == "First"


def test_history_that_a_load_replays_is_no_new_work(tmp_path: Path) -> None:
    log = Log()
    log.add("outbound", jsonrpc="2.0", id="a", method="session/load", params={"sessionId": "s-1", "cwd": "/p"})
    log.said("from yesterday")
    log.add("inbound", jsonrpc="2.0", id="a", result=None)
    log.prompt("Go")
    log.said("today")
    log.end()
    script = read_transcript(log.write(tmp_path))
    assert steps(script) == ["assistant: today"]
    assert script.report.folded == {"history replayed by session/load": 1}


def test_bare_lines_without_times_are_read_too(log: Log, tmp_path: Path) -> None:
    work(log)
    bare = [json.dumps(json.loads(line)["message"]) for line in log.lines]
    (tmp_path / "bare.jsonl").write_text("\n".join(bare) + "\n")
    script = read_transcript(tmp_path / "bare.jsonl")
    assert len(steps(script)) == 8
    assert script.turns[0].ended > script.turns[0].at


def test_the_public_log_becomes_a_cassette(tmp_path: Path) -> None:
    path = SHARED / "transcripts" / "acp" / "two-connections-recorded.ndjson"
    if not path.is_file():
        print(f"not here: {path.name}; nothing was tried")
        return
    made = import_transcript(path, ArtifactStore(tmp_path))
    assert replay(made.path).equal
