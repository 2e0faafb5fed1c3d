"""Logs of the Agent Client Protocol: JSON-RPC both ways, bare or inside an envelope (transcript-formats §7)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from cassettes.transcripts.lines import MAX_LINE_BYTES, read_records
from cassettes.transcripts.script import CallEnd, CallStart, FileDiff, Report, Script, Text, Turn

JsonObject = dict[str, Any]
Direction = Literal["inbound", "outbound"]  # seen from the client

ENDS_OPEN = "The log ends before the turn does."
_TIMES = ("at", "timestamp", "ts", "time")
_FROM_CLIENT = ("initialize", "authenticate", "session/new", "session/load", "session/resume", "session/fork")
_CLIENT_METHODS = {*_FROM_CLIENT, "session/list", "session/prompt", "session/set_mode", "session/set_model"}
_CLIENT_METHODS |= {"session/set_config_option", "session/cancel"}
_CHUNKS = {"agent_message_chunk": "assistant", "agent_thought_chunk": "reasoning"}
_QUIET = {"available_commands_update", "config_option_update", "usage_update", "user_message_chunk"}
_STEP_MS = 1000  # where the log has no times, one second a record keeps the order visible


def read_acp(path: Path, *, started: int, session_id: str = "", limit: int = MAX_LINE_BYTES) -> Script:
    """One session of a log: the one named, else the one with most prompts. `started` stands for missing times."""
    report = Report(format="acp")
    log = _Log(report, started)
    for record in read_records(path, report, limit=limit):
        log.take(record.value)
    sessions = log.finish()
    chosen = sessions.get(session_id) or max(sessions.values(), key=lambda one: len(one.turns), default=None)
    if chosen is None:
        chosen = Script(provider="acp", session_id=path.stem, report=report)
    left = [one for one in sessions.values() if one is not chosen and one.turns]
    if left:
        report.count("notes", "another session of the log, which was not imported", len(left))
    chosen.session_ids = list(sessions)
    chosen.report = report
    return chosen


class _Log:
    """Pairs requests and responses of every connection, and writes down what each session did."""

    def __init__(self, report: Report, started: int) -> None:
        self._report = report
        self._now = started
        self._timed = False
        self._connection = 0
        self._asked: dict[tuple[int, Direction, str], tuple[str, JsonObject]] = {}
        self._sessions: dict[str, _Session] = {}
        self._loading: set[str] = set()
        self._cwd = ""

    def take(self, record: JsonObject) -> None:
        message = _rpc(record)
        if message is None:
            self._report.count("unknown", "record without a protocol message")
            return
        self._clock(record)
        method, name = message.get("method"), message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str):
            if method.startswith("_"):
                self._report.count("folded", "extension of the protocol")
                return
            direction = _direction(record, method)
            if method == "initialize":
                self._connection += 1
            if name is not None:
                self._asked[self._connection, direction, repr(name)] = (method, params)
            self._request(method, params, direction)
            return
        for direction in ("outbound", "inbound"):
            asked = self._asked.pop((self._connection, direction, repr(name)), None)
            if asked is not None:
                self._response(*asked, message)
                return
        self._report.count("folded", "response without its request")

    def finish(self) -> dict[str, Script]:
        """Every session of the log by its id."""
        return {name: session.finish(self._now) for name, session in self._sessions.items()}

    def _clock(self, record: JsonObject) -> None:
        told = next((_milliseconds(record[one]) for one in _TIMES if one in record), 0)
        if told:
            self._now = told if not self._timed else max(self._now, told)
            self._timed = True
        else:
            self._now += _STEP_MS

    def _session(self, params: JsonObject) -> _Session | None:
        name = params.get("sessionId")
        if not isinstance(name, str) or not name:
            return None
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = _Session(name, self._cwd, self._now, self._report)
        return session

    def _request(self, method: str, params: JsonObject, direction: Direction) -> None:
        if method in ("session/new", "session/load", "session/resume"):
            self._cwd = str(params.get("cwd") or self._cwd)
        session = self._session(params)
        if method == "session/load" and session is not None:
            self._loading.add(session.script.session_id)
        elif method == "session/prompt" and session is not None:
            session.prompt(params.get("prompt"), self._now)
        elif method == "session/cancel" and session is not None:
            session.canceled = True
        elif method == "session/update" and session is not None:
            if session.script.session_id in self._loading:
                self._report.count("folded", "history replayed by session/load")
            else:
                session.update(params.get("update"), self._now)
        elif direction == "inbound" or method not in _CLIENT_METHODS:
            self._report.count("folded", f"request {method}"[:80])

    def _response(self, method: str, params: JsonObject, message: JsonObject) -> None:
        result = message.get("result")
        result = result if isinstance(result, dict) else {}
        if method == "session/new":
            self._session(result)
        elif method == "session/load":
            self._loading.discard(str(params.get("sessionId")))
        elif method == "session/prompt":
            session = self._session(params)
            if session is not None:
                session.ended(result, message.get("error"), self._now)


class _Session:
    def __init__(self, name: str, cwd: str, started: int, report: Report) -> None:
        self.script = Script(provider="acp", session_id=name, cwd=cwd, started=started, report=report)
        self.canceled = False
        self._report = report
        self._turn: Turn | None = None
        self._calls: dict[str, JsonObject] = {}
        self._text: tuple[str, str, Text] | None = None  # kind, message id, the open text

    def prompt(self, blocks: Any, now: int) -> None:
        """`session/prompt`: a Turn begins."""
        if self._turn is not None:
            self._close("interrupted" if self.canceled else "failed", now, ENDS_OPEN)
        self.canceled = False
        self._turn = Turn(at=now, prompt=_prompt(blocks, self._report), ended=now)
        self._calls, self._text = {}, None
        self.script.turns.append(self._turn)

    def ended(self, result: JsonObject, error: Any, now: int) -> None:
        """The response to the prompt."""
        reason = str(result.get("stopReason") or "")
        if isinstance(error, dict) and not self.canceled:
            self._close("failed", now, str(error.get("message") or "The turn failed."))
        elif reason == "cancelled" or self.canceled:
            self._close("interrupted", now)
        elif reason == "refusal":
            self._close("failed", now, "The agent refused to go on.")
        else:
            self._close("completed", now)

    def finish(self, now: int) -> Script:
        """The session as far as the log goes."""
        if self._turn is not None:
            self._report.count("notes", "turn that does not end in the file")
            self._close("failed", now, ENDS_OPEN)
        return self.script

    def update(self, update: Any, now: int) -> None:
        """`session/update`."""
        if not isinstance(update, dict):
            self._report.count("unknown", "update without content")
            return
        kind = str(update.get("sessionUpdate"))
        turn = self._turn
        if kind == "session_info_update" and isinstance(update.get("title"), str):
            self.script.title = update["title"]
        elif kind in _QUIET or kind == "current_mode_update":
            self._report.count("folded", f"update {kind}")
        elif turn is None:
            self._report.count("folded", "update outside of a turn")
        elif kind in _CHUNKS:
            self._chunk(turn, kind, update, now)
        elif kind in ("tool_call", "tool_call_update"):
            self._call(turn, update, now)
        elif kind == "plan":
            self._text = None
            entries = update.get("entries") if isinstance(update.get("entries"), list) else []
            name = f"plan-{len(turn.steps) + 1}"
            turn.steps.append(CallStart(at=now, call_id=name, name="plan", tool="plan", input={"entries": entries}))
        else:
            self._report.count("unknown", f"update {kind}"[:80])

    def _chunk(self, turn: Turn, kind: str, update: JsonObject, now: int) -> None:
        content = update.get("content")
        text = content.get("text") if isinstance(content, dict) else None
        if not isinstance(text, str):
            self._report.count("unknown", f"content of {kind}")
            return
        message = str(update.get("messageId") or "")
        if self._text is not None and self._text[:2] == (kind, message):
            self._text[2].text += text
            self._text[2].at = now
            return
        name = message or f"text-{len(turn.steps) + 1}"
        spoken: Literal["assistant", "reasoning"] = "assistant" if kind == "agent_message_chunk" else "reasoning"
        step = Text(at=now, kind=spoken, id=name, text=text)
        self._text = (kind, message, step)
        turn.steps.append(step)

    def _call(self, turn: Turn, update: JsonObject, now: int) -> None:
        name = update.get("toolCallId")
        if not isinstance(name, str) or not name:
            self._report.count("unknown", "tool call without an id")
            return
        self._text = None
        known = self._calls.get(name)
        fields = {key: value for key, value in update.items() if value is not None and key != "sessionUpdate"}
        call = self._calls[name] = {**(known or {}), **fields}
        if known is None:
            given = call.get("rawInput")
            given = given if isinstance(given, dict) else {} if given is None else {"value": given}
            title = str(call.get("title") or "Tool")
            more = {"kind": str(call.get("kind") or "other"), "locations": call.get("locations") or []}
            turn.steps.append(CallStart(at=now, call_id=name, name=title, input={"rawInput": given, **more}))
        over = call.get("status") in ("completed", "failed")
        if over and not (known is not None and known.get("status") in ("completed", "failed")):
            turn.steps.append(_call_end(name, call, now))

    def _close(self, outcome: Literal["completed", "interrupted", "failed"], now: int, error: str = "") -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        open_calls = [name for name, call in self._calls.items() if call.get("status") not in ("completed", "failed")]
        if open_calls:
            self._report.count("notes", "call without result", len(open_calls))
        turn.outcome, turn.error, turn.ended = outcome, error, max(now, turn.at)


def _call_end(name: str, call: JsonObject, now: int) -> CallEnd:
    content = [one for one in call.get("content") or [] if isinstance(one, dict)]
    output: JsonObject = {"content": content}
    if call.get("rawOutput") is not None:
        output["rawOutput"] = call["rawOutput"]
    changes = [
        FileDiff(path=one["path"], change="update" if isinstance(one.get("oldText"), str) else "add")
        for one in content
        if one.get("type") == "diff" and isinstance(one.get("path"), str)
    ]
    return CallEnd(at=now, call_id=name, output=output, failed=call.get("status") == "failed", changes=changes)


def _prompt(blocks: Any, report: Report) -> list[JsonObject]:
    prompt: list[JsonObject] = []
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            prompt.append({"type": "text", "text": str(block.get("text") or "")})
        elif kind == "image" and isinstance(block.get("data"), str):
            prompt.append({"type": "image", "mimeType": str(block.get("mimeType")), "data": block["data"]})
        elif kind in ("resource", "resource_link"):
            inner = block.get("resource") if kind == "resource" else block
            uri = inner.get("uri") if isinstance(inner, dict) else ""
            prompt.append({"type": "text", "text": f"[{uri or kind}]"})
        else:
            report.count("unknown", f"block {kind} of a prompt"[:80])
    return prompt


def _rpc(record: JsonObject) -> JsonObject | None:
    """The one JSON-RPC object of a record: itself, or one level below."""
    if _is_rpc(record):
        return record
    found = [inner for inner in record.values() if isinstance(inner, dict) and _is_rpc(inner)]
    return found[0] if len(found) == 1 else None


def _is_rpc(value: JsonObject) -> bool:
    if isinstance(value.get("method"), str):
        return True
    return "id" in value and ("result" in value or "error" in value)


def _direction(record: JsonObject, method: str) -> Direction:
    told = record.get("direction")
    if told in ("inbound", "outbound"):
        return "inbound" if told == "inbound" else "outbound"
    return "outbound" if method in _CLIENT_METHODS else "inbound"


def _milliseconds(value: Any) -> int:
    """ISO text, seconds or milliseconds as epoch milliseconds; 0 for anything else."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return 0
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return round(value if value > 1e11 else value * 1000)
    return 0
