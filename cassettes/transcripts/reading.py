"""Read any transcript: detect, read, and refuse what holds no conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cassettes.core.errors import InputRejected, Place
from cassettes.transcripts.acp import read_acp
from cassettes.transcripts.claude import read_claude
from cassettes.transcripts.claude_stream import read_claude_stream
from cassettes.transcripts.codex import read_codex
from cassettes.transcripts.codex_exec import read_codex_exec
from cassettes.transcripts.detect import detect
from cassettes.transcripts.lines import MAX_LINE_BYTES
from cassettes.transcripts.script import Script


def read_transcript(
    path: Path,
    *,
    children: Sequence[Path] = (),
    parent: Path | None = None,
    session_id: str = "",
    limit: int = MAX_LINE_BYTES,
) -> Script:
    """The session of a transcript file.

    `children` are files of subagents (found beside the file when not given), `parent` the rollout that a fork was
    made of, `session_id` one of several sessions of a log. Raises InputRejected: `transcript_empty`,
    `transcript_look_alike`, `transcript_unknown_format`, … and `transcript_no_conversation`.
    """
    kind = detect(path)
    if kind == "claude-transcript":
        script = read_claude(path, children=children, limit=limit)
    elif kind == "codex-rollout":
        script = read_codex(path, children=children, parent=parent, limit=limit)
    elif kind == "claude-stream":
        script, _ = read_claude_stream(path, started=_written_at(path), session_id=session_id, limit=limit)
    elif kind == "codex-exec":
        script = read_codex_exec(path, started=_written_at(path), limit=limit)
    else:
        script = read_acp(path, started=_written_at(path), session_id=session_id, limit=limit)
    if not script.turns:
        raise InputRejected(
            f"the file holds {script.report.records} records, and no prompt or answer among them",
            code="transcript_no_conversation",
            place=Place(file=path.name),
            hint=_what_it_holds(script),
        )
    return script


def _written_at(path: Path) -> int:
    return max(1, path.stat().st_mtime_ns // 1_000_000)


def _what_it_holds(script: Script) -> str:
    held = {**script.report.folded, **script.report.unknown}
    most = sorted(held.items(), key=lambda entry: -entry[1])[:4]
    return "It holds only " + ", ".join(f"{name} ({count})" for name, count in most) + "." if most else ""
