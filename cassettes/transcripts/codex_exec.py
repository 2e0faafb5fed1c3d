"""Codex `exec --json` logs: items in order, no times, no prompt (transcript-formats §6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cassettes.transcripts.codex_calls import Call, changes_of, read_output
from cassettes.transcripts.codex_items import content_blocks, integer, text_of
from cassettes.transcripts.lines import MAX_LINE_BYTES, read_records
from cassettes.transcripts.script import CallEnd, CallStart, Notice, Report, Script, Text, Turn, Usage

JsonObject = dict[str, Any]

NO_PROMPT = "(the log holds no prompt)"
ENDS_OPEN = "The log ends before the turn does."
_STEP_MS = 1000  # the log has no times; one second a record keeps the order visible


def read_codex_exec(path: Path, *, started: int, limit: int = MAX_LINE_BYTES) -> Script:
    """The runs of one log as turns. `started` is the time (epoch ms) that stands for the missing ones."""
    report = Report(format="codex-exec")
    script = Script(provider="codex", session_id=path.stem, report=report, started=started)
    log = _Log(script, report, started)
    for record in read_records(path, report, limit=limit):
        log.take(record.value)
    log.finish()
    report.count("notes", "the log has no times")
    return script


class _Log:
    def __init__(self, script: Script, report: Report, started: int) -> None:
        self._script = script
        self._report = report
        self._now = started
        self._run = 0
        self._turn: Turn | None = None
        self._open: dict[str, CallStart] = {}
        self._done: set[str] = set()

    def take(self, value: JsonObject) -> None:
        if isinstance(value.get("msg"), dict):
            value = _from_old(value["msg"])
        kind = text_of(value.get("type"))
        self._now += _STEP_MS
        if kind in ("thread.started", "thread.resumed"):
            self._thread(value)
        elif kind == "turn.started":
            self._close("completed")
            self._begin()
        elif kind == "turn.completed":
            self._usage(value.get("usage"))
            self._close("completed")
        elif kind == "turn.failed":
            error = value.get("error")
            message = text_of(error.get("message")) if isinstance(error, dict) else text_of(error)
            self._begin()
            self._close("failed", message or "The turn failed.")
        elif kind == "error":
            self._notice("error", text_of(value.get("message")))
        elif kind.startswith("item.") and isinstance(value.get("item"), dict):
            self._item(kind, value["item"])
        else:
            self._report.count("unknown", f"record {kind or '(no type)'}"[:80])

    def finish(self) -> None:
        turn = self._turn
        if turn is not None:
            self._report.count("notes", "turn that does not end in the file")
            self._close("failed", ENDS_OPEN)
        missing = len(self._open)
        if missing:
            self._report.count("notes", "call without result", missing)

    def _thread(self, value: JsonObject) -> None:
        self._run += 1
        name = text_of(value.get("thread_id"))
        if name and name not in self._script.session_ids:
            self._script.session_ids.append(name)
        if self._run == 1 and name:
            self._script.session_id = name
        self._script.cwd = self._script.cwd or text_of(value.get("cwd"))
        self._script.model = self._script.model or text_of(value.get("model"))
        self._script.version = self._script.version or text_of(value.get("cli_version"))

    def _begin(self) -> Turn:
        if self._turn is None:
            prompt = [{"type": "text", "text": NO_PROMPT}]
            self._turn = Turn(at=self._now, prompt=prompt, ended=self._now, invented=True)
        return self._turn

    def _close(self, outcome: str, error: str = "") -> None:
        turn = self._turn
        if turn is not None:
            turn.outcome = "failed" if outcome == "failed" else "completed"
            turn.error = error
            turn.ended = self._now
            self._script.turns.append(turn)
            self._turn = None

    def _notice(self, kind: str, title: str) -> None:
        self._begin().steps.append(Notice(at=self._now, kind=kind, title=title or kind))

    def _item(self, event: str, item: JsonObject) -> None:
        kind = text_of(item.get("type")) or text_of(item.get("item_type"))
        done = event == "item.completed"
        name = f"run-{self._run}-{text_of(item.get('id')) or self._now}"
        if kind in ("agent_message", "assistant_message", "reasoning"):
            text = text_of(item.get("text"))
            if done and text.strip():
                spoken = "reasoning" if kind == "reasoning" else "assistant"
                self._begin().steps.append(Text(at=self._now, kind=spoken, id=name, text=text))  # type: ignore[arg-type]
        elif kind == "error":
            if done:
                self._notice("error", text_of(item.get("message")))
        elif kind in _CALLS:
            self._call(done, name, kind, item)
        else:
            self._report.count("unknown", f"item {kind or '(no type)'}"[:80])

    def _call(self, done: bool, name: str, kind: str, item: JsonObject) -> None:
        if name in self._done:
            self._report.count("folded", "repeated item")
            return
        steps = self._begin().steps
        if name not in self._open:
            call = _CALLS[kind](item)
            start = CallStart(at=self._now, call_id=name, name=call.name, tool=call.tool, input=call.input)
            steps.append(start)
            self._open[name] = start
        elif kind == "todo_list":
            self._open[name].input = _todo(item).input
        if not done:
            return
        del self._open[name]
        self._done.add(name)
        status = text_of(item.get("status"))
        code = integer(item.get("exit_code"))
        failed = status in ("failed", "declined") or code not in (None, 0) or bool(item.get("error"))
        output: JsonObject = {}
        if text_of(item.get("aggregated_output")):
            output["stdout"] = item["aggregated_output"]
        if code is not None:
            output["exitCode"] = code
        if item.get("result") is not None:
            output["text"] = read_output(item["result"]).text
        error = item.get("error")
        message = text_of(error.get("message")) if isinstance(error, dict) else text_of(error)
        changes = [] if failed else changes_of(item.get("changes"))
        end = CallEnd(
            at=self._now, call_id=name, output=output, failed=failed, error=message or status, changes=changes
        )
        if not failed:
            end.error = ""
        steps.append(end)

    def _usage(self, value: object) -> None:
        if isinstance(value, dict):
            used = Usage(
                input_tokens=integer(value.get("input_tokens")) or 0,
                output_tokens=integer(value.get("output_tokens")) or 0,
                cached_tokens=integer(value.get("cached_input_tokens")) or 0,
            )
            self._script.usage = used  # cumulative a thread


def _command(item: JsonObject) -> Call:
    return Call(name="exec_command", tool="command", input={"command": text_of(item.get("command"))})


def _patch(item: JsonObject) -> Call:
    changes = item.get("changes")
    return Call(name="apply_patch", tool="patch", input={"files": len(changes) if isinstance(changes, list) else 0})


def _mcp(item: JsonObject) -> Call:
    given = item.get("arguments")
    name = f"mcp__{text_of(item.get('server'))}__{text_of(item.get('tool'))}"
    return Call(name=name, tool="mcp", input=given if isinstance(given, dict) else {})


def _search(item: JsonObject) -> Call:
    return Call(name="web_search", tool="search", input={"query": text_of(item.get("query"))})


def _todo(item: JsonObject) -> Call:
    plan = [
        {"step": text_of(entry.get("text")), "status": "completed" if entry.get("completed") else "pending"}
        for entry in item.get("items") or []
        if isinstance(entry, dict)
    ]
    return Call(name="update_plan", tool="plan", input={"plan": plan})


def _agent(item: JsonObject) -> Call:
    given = {"prompt": text_of(item.get("prompt"))}
    return Call(name=text_of(item.get("tool")) or "agent", tool="agent", input=given)


def _tool(item: JsonObject) -> Call:
    given = item.get("arguments", item.get("input"))
    return Call(name=text_of(item.get("name")) or "tool", tool="other", input=given if isinstance(given, dict) else {})


_CALLS = {
    "command_execution": _command,
    "file_change": _patch,
    "mcp_tool_call": _mcp,
    "web_search": _search,
    "todo_list": _todo,
    "collab_tool_call": _agent,
    "tool_call": _tool,
}


def _from_old(message: JsonObject) -> JsonObject:
    """The events of before October 2025 (`{"id", "msg"}`) as items."""
    kind = text_of(message.get("type"))
    if kind == "task_started":
        return {"type": "turn.started"}
    if kind == "task_complete":
        return {"type": "turn.completed"}
    if kind in ("agent_message", "agent_reasoning"):
        _, text = content_blocks(message.get("message", message.get("text")))
        name = "reasoning" if kind == "agent_reasoning" else "agent_message"
        return {"type": "item.completed", "item": {"type": name, "text": text}}
    if kind in ("exec_command_begin", "exec_command_end"):
        command = message.get("command")
        line = " ".join(str(part) for part in command) if isinstance(command, list) else text_of(command)
        item = {
            "type": "command_execution",
            "id": message.get("call_id"),
            "command": line,
            "aggregated_output": text_of(message.get("aggregated_output")) or text_of(message.get("stdout")),
            "exit_code": message.get("exit_code"),
        }
        return {"type": "item.completed" if kind.endswith("end") else "item.started", "item": item}
    if kind in ("error", "stream_error"):
        return {"type": "error", "message": message.get("message")}
    return {"type": kind}
