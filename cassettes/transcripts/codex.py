"""Codex rollouts: from records to a Script (transcript-formats §5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cassettes.transcripts.children import Child, place_children
from cassettes.transcripts.clock import epoch_ms
from cassettes.transcripts.codex_story import Rollout
from cassettes.transcripts.lines import MAX_LINE_BYTES, Record, read_records
from cassettes.transcripts.script import Report, Script

JsonObject = dict[str, Any]

_BARE = {"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"}
_KNOWN = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_MACHINE = {
    "world_state",
    "token_usage_record",
    "inter_agent_communication_metadata",
    "retained_context",
    "ghost_snapshot",
}
_MOST_SIBLINGS = 500
_GAP_MS = 1000
_BURST_MS = 500  # a copy is written at once; a conversation is not


def read_codex(
    path: Path, *, children: Sequence[Path] = (), parent: Path | None = None, limit: int = MAX_LINE_BYTES
) -> Script:
    """A rollout and the rollouts of its child threads (given, or found beside it)."""
    report = Report(format="codex-rollout")
    records = _records(path, report, limit)
    script = Script(provider="codex", session_id=path.stem, report=report)
    _describe(script, records)
    inherited = _inherited(records, parent, limit)
    if inherited:
        report.count("folded", "record inherited from the parent session", inherited)
        report.count("notes", "fork: inherited part left out")
    rollout = Rollout(report, script, has_prompt_events=_has_prompt_events(records[inherited:]))
    for record in records[:inherited]:
        rollout.inherit(record)
    for record in records[inherited:]:
        rollout.take(record)
    script.turns = rollout.finish()
    found = []
    for file in children or child_rollouts(path, script.session_id):
        found.append(_child(file, script, report, limit))
    for child in found:
        child.call_id = rollout.spawned.get(child.key, "")
    place_children(script.turns, found, report)
    if found:
        report.count("notes", "child session", len(found))
    return script


def _records(path: Path, report: Report, limit: int) -> list[Record]:
    """Every record as `{timestamp, type, payload}`; those of the time before that envelope are wrapped."""
    kept: list[Record] = []
    time: object = ""
    for record in read_records(path, report, limit=limit):
        value = record.value
        kind = value.get("type")
        payload = value.get("payload")
        if not kept and "type" not in value and {"id", "timestamp"} <= value.keys():
            kept.append(
                Record(record.line, {"timestamp": value["timestamp"], "type": "session_meta", "payload": value})
            )
            time = value["timestamp"]
        elif isinstance(kind, str) and kind in _BARE and payload is None:
            stamped = value.get("timestamp", time)
            kept.append(Record(record.line, {"timestamp": stamped, "type": "response_item", "payload": value}))
        elif value.get("record_type") == "state":
            report.count("folded", "state")
        elif isinstance(kind, str) and kind in _KNOWN and isinstance(payload, dict):
            kept.append(record)
        elif isinstance(kind, str) and kind in _MACHINE:
            report.count("folded", kind)
        else:
            report.count("unknown", f"record {kind if isinstance(kind, str) else '(no type)'}"[:80])
    return kept


def _describe(script: Script, records: list[Record]) -> None:
    first = True
    for record in records:
        payload = record.value["payload"]
        kind = record.value.get("type")
        if kind == "session_meta":
            session = _text(payload.get("id")) or _text(payload.get("session_id"))
            if session and session not in script.session_ids:
                script.session_ids.append(session)
            if not first:
                continue
            first = False
            script.session_id = session or script.session_id
            script.cwd = _text(payload.get("cwd"))
            script.version = _text(payload.get("cli_version"))
            script.forked_from = _text(payload.get("forked_from_id"))
            git = payload.get("git")
            script.git_branch = _text(git.get("branch")) if isinstance(git, dict) else ""
            script.started = epoch_ms(record.value.get("timestamp")) or epoch_ms(payload.get("timestamp"))
        elif kind == "turn_context":
            script.cwd = script.cwd or _text(payload.get("cwd"))
        elif kind == "event_msg" and payload.get("type") == "thread_name_updated":
            script.title = _text(payload.get("thread_name")) or _text(payload.get("threadName"))


def parent_of(payload: JsonObject) -> str:
    """The thread that spawned this one, from a `session_meta`."""
    parent = _text(payload.get("parent_thread_id"))
    source = payload.get("source")
    if not parent and isinstance(source, dict):
        inner = source.get("subagent")
        inner = inner.get("thread_spawn") if isinstance(inner, dict) else None
        parent = _text(inner.get("parent_thread_id")) if isinstance(inner, dict) else ""
    return parent


def _inherited(records: list[Record], parent: Path | None, limit: int) -> int:
    """How many records at the start are the parent's: by its content, else up to the first gap of over a second."""
    metas = [number for number, record in enumerate(records) if record.value.get("type") == "session_meta"]
    if not metas:
        return 0
    first = records[metas[0]].value["payload"]
    if not (_text(first.get("forked_from_id")) or parent_of(first)) or first.get("history_mode") == "paginated":
        return 0
    if parent is not None:
        return _common_part(records, _records(parent, Report(), limit))
    end = len(records)
    previous = epoch_ms(records[0].value.get("timestamp"))
    for number, record in enumerate(records):
        time = epoch_ms(record.value.get("timestamp")) or previous
        if time - previous > _GAP_MS:
            end = number
            break
        previous = max(previous, time)
    copied = records[:end]
    answered = any(
        record.value["payload"].get("type")
        in ("function_call_output", "agent_message", "task_complete", "turn_complete")
        or record.value["payload"].get("role") == "assistant"
        for record in copied
    )
    copied_at_once = end < len(records) and previous - epoch_ms(records[0].value.get("timestamp")) <= _BURST_MS
    return end if len(metas) > 1 or (answered and copied_at_once) else 0


def _common_part(records: list[Record], parent: list[Record]) -> int:
    known = [record.value["payload"] for record in parent]
    at = 0
    end = 0
    for number, record in enumerate(records):
        payload = record.value["payload"]
        if record.value.get("type") == "session_meta":
            end = number + 1 if number and end == number else end
            continue
        following = next((place for place in range(at, min(at + 50, len(known))) if known[place] == payload), None)
        if following is None:
            if end and number > end + 5:
                break
            continue
        at = following + 1
        end = number + 1
    return end


def _has_prompt_events(records: list[Record]) -> bool:
    for record in records:
        payload = record.value["payload"]
        if record.value.get("type") != "event_msg":
            continue
        item = payload.get("item")
        if payload.get("type") == "user_message" or (isinstance(item, dict) and item.get("type") == "UserMessage"):
            return True
    return False


def child_rollouts(path: Path, session_id: str) -> list[Path]:
    """Rollouts in the same folder whose first record names this session as their parent."""
    found: list[Path] = []
    for number, file in enumerate(sorted(path.parent.glob("rollout-*.jsonl"))):
        if number >= _MOST_SIBLINGS:
            break
        if file == path:
            continue
        for record in read_records(file, Report()):
            payload = record.value.get("payload")
            if isinstance(payload, dict) and session_id and parent_of(payload) == session_id:
                found.append(file)
            break
    return found


def _child(file: Path, script: Script, report: Report, limit: int) -> Child:
    inner = Script(provider="codex", session_id=file.stem, report=report)
    records = _records(file, report, limit)
    _describe(inner, records)
    rollout = Rollout(report, inner, has_prompt_events=_has_prompt_events(records), child=True)
    inherited = _inherited(records, None, limit)
    for record in records[:inherited]:
        rollout.inherit(record)
    for record in records[inherited:]:
        rollout.take(record)
    turns = rollout.finish()
    script.usage.add(inner.usage)
    first: JsonObject = next((record.value["payload"] for record in records), {})
    last = turns[-1] if turns else None
    return Child(
        key=inner.session_id,
        prompt=turns[0].text if turns else "",
        title=_text(first.get("agent_nickname")),
        model=inner.model,
        steps=[step for turn in turns for step in turn.steps],
        failed=last is not None and last.outcome == "failed",
        interrupted=last is not None and last.outcome == "interrupted",
        background=True,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
