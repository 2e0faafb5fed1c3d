"""Formats are known by content; look-alikes are refused by name (transcript-formats §1, case 7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cassettes.core.errors import InputRejected
from cassettes.transcripts.detect import detect

CASES: list[tuple[Any, str]] = [
    ({"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {}}, "codex-rollout"),
    ({"timestamp": "2026-01-01T00:00:00Z", "type": "world_state", "payload": {}}, "codex-rollout"),
    ({"id": "x", "timestamp": "2025-08-01T00:00:00Z", "instructions": None}, "codex-rollout"),
    ({"type": "thread.started", "thread_id": "t"}, "codex-exec"),
    ({"type": "error", "message": "Reconnecting"}, "codex-exec"),
    ({"id": "0", "msg": {"type": "task_started"}}, "codex-exec"),
    ({"type": "system", "subtype": "init", "session_id": "s"}, "claude-stream"),
    ({"type": "summary", "summary": "s", "leafUuid": "u"}, "claude-transcript"),
    ({"type": "user", "sessionId": "s", "session_id": "s", "uuid": "u"}, "claude-transcript"),
    ({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}, "claude-transcript"),
    ({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}, "acp"),
    ({"seq": 1, "at": "x", "message": {"jsonrpc": "2.0", "id": 0, "result": {}}}, "acp"),
    ({"timestamp": 1, "method": "session/update", "params": {}}, "acp"),
]


@pytest.mark.parametrize(("first", "format_"), CASES)
def test_the_first_record_that_tells_decides(tmp_path: Path, first: Any, format_: str) -> None:
    path = tmp_path / "anything.txt"
    path.write_text("not json\n" + json.dumps({"silly": 1}) + "\n" + json.dumps(first) + "\n")
    if first.get("instructions", 1) is None:
        path.write_text(json.dumps(first) + "\n" + json.dumps({"type": "message", "role": "user"}) + "\n")
    assert detect(path) == format_


LOOK_ALIKES: list[tuple[str, str, str]] = [
    (
        '{"uuid":"a","parentUuid":null,"type":"user","message":{"role":"user","parts":[]}}',
        "transcript_look_alike",
        "Qwen",
    ),
    ('{"type":"message","session_id":"s","role":"user"}', "transcript_look_alike", "Droid"),
    ('{"type":"session","version":3,"id":"x"}', "transcript_look_alike", "OpenClaw"),
    ('{"ts":"2026","dir":"from_tui","kind":"key_event"}', "transcript_look_alike", "Codex terminal"),
    ('{"t_ms":1,"dir":"in","line":"{}"}', "transcript_look_alike", "captured"),
    ('[\n  {"type":"user"},\n  {"type":"assistant"}\n]', "transcript_json_array", "array"),
    ('[{"type":"user"}]', "transcript_json_array", "array"),
    ('{\n  "sessions": [\n    1\n  ]\n}', "transcript_json_document", "pretty-printed"),
    ('[DEBUG] request {\n  "a": 1\n}\n2026-01-01 [INFO] done\nplain words\n', "transcript_debug_log", "log"),
    ("just some words\nand more\n", "transcript_debug_log", "log"),
    ('{"a":1}\n{"b":2}\n', "transcript_unknown_format", "known format"),
]


@pytest.mark.parametrize(("content", "code", "named"), LOOK_ALIKES)
def test_look_alikes_are_refused_by_name(tmp_path: Path, content: str, code: str, named: str) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text(content + "\n")
    with pytest.raises(InputRejected) as refused:
        detect(path)
    assert refused.value.code == code
    assert named in refused.value.message
    assert refused.value.place.file == "session.jsonl"


def test_a_compressed_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 40)
    with pytest.raises(InputRejected) as refused:
        detect(path)
    assert refused.value.code == "transcript_compressed"
