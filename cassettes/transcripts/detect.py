"""Which format a file has, by its content only (transcript-formats §1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from cassettes.core.errors import InputRejected, Place
from cassettes.transcripts.lines import read_records
from cassettes.transcripts.script import Report

JsonObject = dict[str, Any]
Format = Literal["claude-transcript", "claude-stream", "codex-rollout", "codex-exec", "acp"]

_HEAD_BYTES = 64 * 1024
_HEAD_RECORDS = 50
_ROLLOUT_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
_BARE_ITEMS = {"message", "reasoning", "function_call", "function_call_output", "local_shell_call"}
_HINT = "Give a session file of Claude Code (projects/…/<session>.jsonl) or of Codex (sessions/…/rollout-….jsonl)."


def detect(path: Path) -> Format:
    """The format of a transcript; a look-alike or something else is refused and named."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n\x00"):
        raise _refused(path, "transcript_empty", "the file is empty", hint=_HINT)
    if head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd")):
        raise _refused(path, "transcript_compressed", "the file is compressed", hint="Unpack it first.")
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff \t\r\n")
    if text[:1] == "[" and text[1:].lstrip()[:1] in ("{", "["):
        raise _refused(
            path, "transcript_json_array", "the file is one JSON array; a transcript has one object a line", hint=_HINT
        )
    if text.startswith("{") and text[1:].splitlines()[:1] in ([""], []) and not _looks_like_log(text):
        raise _refused(path, "transcript_json_document", "the file is one pretty-printed JSON document", hint=_HINT)
    report = Report()
    seen = 0
    first: JsonObject | None = None
    for record in read_records(path, report):
        seen += 1
        first = first or record.value
        found = _format_of(record.value, path)
        if found is not None:
            return found
        if seen >= _HEAD_RECORDS or record.line > 10 * _HEAD_RECORDS:
            break
    if first is not None and _is_old_rollout(first):
        return "codex-rollout"
    raise _not_a_transcript(path, head, seen, report)


def _format_of(value: JsonObject, path: Path) -> Format | None:
    kind = value.get("type")
    _refuse_look_alike(value, kind, path)
    if isinstance(value.get("payload"), dict) and "timestamp" in value and kind in _ROLLOUT_TYPES:
        return "codex-rollout"
    if isinstance(kind, str) and (kind.startswith(("thread.", "turn.", "item."))):
        return "codex-exec"
    if kind == "error" and isinstance(value.get("message"), str) and "session_id" not in value:
        return "codex-exec"
    if isinstance(value.get("msg"), dict) and "type" in value["msg"] and "id" in value:
        return "codex-exec"
    if _is_acp(value):
        return "acp"
    if any(isinstance(value.get(name), str) for name in ("sessionId", "leafUuid")):
        return "claude-transcript"
    if "uuid" in value and "parentUuid" in value:
        return "claude-transcript"
    if isinstance(value.get("messageId"), str) and isinstance(value.get("snapshot"), dict):
        return "claude-transcript"
    if isinstance(value.get("session_id"), str) and isinstance(kind, str):
        return "claude-stream"
    return None


def _is_acp(value: JsonObject) -> bool:
    def is_rpc(candidate: object) -> bool:
        if not isinstance(candidate, dict):
            return False
        return "jsonrpc" in candidate or (isinstance(candidate.get("method"), str) and "params" in candidate)

    return is_rpc(value) or ("type" not in value and any(is_rpc(inner) for inner in value.values()))


def _is_old_rollout(value: JsonObject) -> bool:
    return "type" not in value and all(name in value for name in ("id", "timestamp", "instructions"))


def _refuse_look_alike(value: JsonObject, kind: object, path: Path) -> None:
    message = value.get("message")
    found = ""
    if (
        "uuid" in value
        and "parentUuid" in value
        and isinstance(message, dict)
        and isinstance(message.get("parts"), list)
    ):
        found = "a Qwen Code session"
    elif kind == "message" and isinstance(value.get("session_id"), str):
        found = "a Factory Droid stream"
    elif kind == "session" and "payload" not in value and "sessionId" not in value:
        found = "a pi or OpenClaw session"
    elif "ts" in value and "dir" in value and "kind" in value:
        found = "a log of the Codex terminal interface"
    elif {"t_ms", "dir", "line"} <= value.keys():
        found = "captured provider traffic"
    if found:
        raise _refused(
            path, "transcript_look_alike", f"this is {found}, which cannot be imported", found=found, hint=_HINT
        )


def _not_a_transcript(path: Path, head: bytes, seen: int, report: Report) -> InputRejected:
    text = head.decode("utf-8", errors="replace").lstrip("\ufeff \t\r\n")
    kinds = {problem.kind for problem in report.problems}
    if not seen and "line_too_long" in kinds:
        return _refused(path, "transcript_line_too_long", "no line of the file is short enough to be read", hint=_HINT)
    if _looks_like_log(text):
        return _refused(path, "transcript_debug_log", "this is a debug log, not a session file", hint=_HINT)
    what = "no JSON object in the file" if not seen else "no record of a known format in the file"
    return _refused(path, "transcript_unknown_format", what, hint=_HINT)


def _looks_like_log(text: str) -> bool:
    """Text lines between the JSON: most lines of the head are neither JSON nor a part of a printed document."""
    lines = [line for line in text.splitlines() if line.strip()][:60]
    prose = sum(1 for line in lines if line.lstrip()[0] not in '{}[]",-0123456789ntf' or _is_bracketed_log(line))
    return bool(lines) and prose * 10 >= len(lines)


def _is_bracketed_log(line: str) -> bool:
    if not line.startswith("["):
        return False
    try:
        json.loads(line)
    except ValueError:
        return "]" in line and line.strip() not in ("[", "]")
    return False


def _refused(path: Path, code: str, message: str, *, found: object = None, hint: str = "") -> InputRejected:
    return InputRejected(message, code=code, place=Place(file=path.name), found=found, hint=hint)
