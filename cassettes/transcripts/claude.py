"""Claude Code transcripts: from records to a Script (transcript-formats §3)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cassettes.transcripts.children import Child, place_children
from cassettes.transcripts.claude_story import Story
from cassettes.transcripts.claude_text import content_blocks, read_user
from cassettes.transcripts.claude_tree import Node, link, live_story, make_nodes, text_of
from cassettes.transcripts.lines import MAX_LINE_BYTES, Record, read_records
from cassettes.transcripts.script import Report, Script

JsonObject = dict[str, Any]

_TITLES = ("custom-title", "ai-title", "agent-name")
_METADATA = {
    "last-prompt",
    "mode",
    "permission-mode",
    "agent-setting",
    "pr-link",
    "worktree-state",
    "relocated",
    "frame-link",
    "bridge-session",
    "atis-latch",
    "started",
    "result",
    "file-history-snapshot",
    "file-history-delta",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "tools-used",
    "cost-state",
}
_TREE = {"user", "assistant", "system", "attachment", "progress"}


def read_claude(path: Path, *, children: Sequence[Path] = (), limit: int = MAX_LINE_BYTES) -> Script:
    """A session file and the files of its subagents (given, or found beside it)."""
    report = Report(format="claude-transcript")
    records = [record for record in read_records(path, report, limit=limit) if _kept(record, report)]
    script = Script(provider="claude-code", session_id="", report=report)
    nodes = make_nodes((record for record in records if record.value.get("type") in _TREE), report)
    roots = link(nodes, report)
    own = agent_file_id(path) or (nodes[0].agent_id if nodes and all(node.sidechain for node in nodes) else "")
    main = [node for node in nodes if bool(own) or not node.sidechain]
    story = live_story([root for root in roots if own or not root.sidechain], is_prompt, report)
    story = [node for node in story if own or not node.sidechain]
    loose = [record for record in records if record.value.get("type") not in _TREE]
    _describe(script, main or nodes, loose, path)
    builder = Story(report, script)
    builder.play(story, _queue_notices(loose, story))
    script.turns = builder.finish()
    found: list[Child] = []
    if not own:
        found = _inline_children(nodes, script, report)
        for file in children or child_files(path):
            found.extend(_file_child(file, script, report, limit))
        _link_by_agent_id(found, builder.agents, builder.background)
    place_children(script.turns, found, report)
    script.usage = builder.usage()
    _count_children(found, report)
    return script


def agent_file_id(path: Path) -> str:
    """The agent id in the name of a subagent's file (`agent-<id>.jsonl`)."""
    return path.stem.removeprefix("agent-") if path.stem.startswith("agent-") else ""


def child_files(path: Path) -> list[Path]:
    """Subagent files that belong to a session file: below its folder, or beside it (older versions)."""
    below = path.with_suffix("") / "subagents"
    found = sorted(below.glob("agent-*.jsonl")) if below.is_dir() else []
    if not found and path.stem and not agent_file_id(path):
        found = [file for file in sorted(path.parent.glob("agent-*.jsonl")) if _session_of(file) == path.stem]
    return found


def _session_of(path: Path) -> str:
    for record in read_records(path, Report()):
        return text_of(record.value.get("sessionId"))
    return ""


def is_prompt(node: Node) -> bool:
    """Whether a person typed this record."""
    return node.type == "user" and read_user(node.value).kind == "prompt"


def _kept(record: Record, report: Report) -> bool:
    """Drop the bodies of what is no conversation at once: snapshots and progress are most of a file."""
    value = record.value
    kind = value.get("type")
    if kind == "progress":
        data = value.get("data")
        inner = data.get("type") if isinstance(data, dict) else None
        report.count("folded", f"progress / {inner}")
        if isinstance(data, dict):
            value["data"] = {name: data[name] for name in ("type", "agentId") if name in data}
        return True
    if kind in _TREE or kind in _TITLES or kind in ("summary", "queue-operation"):
        return True
    if isinstance(kind, str) and kind in _METADATA:
        report.count("folded", kind)
        return kind == "permission-mode"
    report.count("unknown", f"record {kind if isinstance(kind, str) else '(no type)'}"[:80])
    return False


def _describe(script: Script, nodes: list[Node], loose: list[Record], path: Path) -> None:
    for node in nodes:
        session = text_of(node.value.get("sessionId")) or text_of(node.value.get("session_id"))
        if session and session not in script.session_ids:
            script.session_ids.append(session)
        script.cwd = script.cwd or text_of(node.value.get("cwd"))
        script.version = text_of(node.value.get("version")) or script.version
        script.git_branch = script.git_branch or text_of(node.value.get("gitBranch"))
        script.permission = script.permission or text_of(node.value.get("permissionMode"))
        forked = node.value.get("forkedFrom")
        if isinstance(forked, dict):
            script.forked_from = text_of(forked.get("sessionId")) or script.forked_from
    last = next((node.value for node in reversed(nodes) if node.value.get("sessionId")), {})
    script.session_id = text_of(last.get("sessionId")) or path.stem
    known = {node.uuid for node in nodes}
    summary = ""
    titles: dict[str, str] = {}
    for record in loose:
        kind = text_of(record.value.get("type"))
        if kind == "summary":
            if record.value.get("leafUuid") in known:
                summary = text_of(record.value.get("summary"))
            else:
                script.report.count("folded", "summary of another session")
        elif kind in _TITLES:
            name = {"custom-title": "customTitle", "ai-title": "aiTitle", "agent-name": "agentName"}[kind]
            titles[kind] = text_of(record.value.get(name))
        elif kind == "permission-mode":
            script.permission = text_of(record.value.get("permissionMode")) or script.permission
    script.title = next((titles[kind] for kind in _TITLES if titles.get(kind)), summary)


def _queue_notices(loose: list[Record], story: list[Node]) -> list[Record]:
    """Prompts that were queued and taken back: nothing else in the file tells of them."""
    told: set[str] = set()
    for node in story:
        if node.type == "user":
            told.update(text_of(block.get("text")).strip() for block in content_blocks(node.value))
        attachment = node.value.get("attachment")
        if isinstance(attachment, dict):
            told.add(_attached_text(attachment.get("prompt")).strip())
    waiting: list[Record] = []
    lost: list[Record] = []
    for record in loose:
        if record.value.get("type") != "queue-operation":
            continue
        operation = record.value.get("operation")
        if operation == "enqueue":
            waiting.append(record)
        elif operation == "dequeue" and waiting:
            waiting.pop(0)
        elif operation in ("remove", "popAll"):
            taken = waiting if operation == "popAll" else waiting[:1]
            lost.extend(taken)
            waiting = waiting[len(taken) :]
    lost.extend(waiting)
    return [
        record
        for record in lost
        if text_of(record.value.get("content")).strip()
        and text_of(record.value["content"]).strip() not in told
        and not text_of(record.value["content"]).startswith(("<task-notification>", "/"))
    ]


def _attached_text(prompt: object) -> str:
    if isinstance(prompt, list):
        return "\n".join(text_of(block.get("text")) for block in prompt if isinstance(block, dict))
    return text_of(prompt)


def _inline_children(nodes: list[Node], script: Script, report: Report) -> list[Child]:
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        if not node.sidechain:
            continue
        root = node
        while root.parent is not None and root.parent.sidechain:
            root = root.parent
        groups.setdefault(node.agent_id or root.agent_id or root.uuid, []).append(node)
    return [_child(key, members, script, report) for key, members in groups.items()]


def _file_child(file: Path, script: Script, report: Report, limit: int) -> list[Child]:
    nodes = make_nodes((record for record in read_records(file, report, limit=limit) if _kept(record, report)), report)
    link(nodes, report)
    if not nodes:
        return []
    child = _child(agent_file_id(file) or nodes[0].agent_id, nodes, script, report)
    meta = file.with_name(file.stem + ".meta.json")
    if meta.is_file() and meta.stat().st_size < 65536:
        try:
            described = json.loads(meta.read_bytes())
        except ValueError:
            described = None
        if isinstance(described, dict):
            child.title = text_of(described.get("description"))
            child.call_id = text_of(described.get("toolUseId"))
    return [child]


def _child(key: str, nodes: Iterable[Node], script: Script, report: Report) -> Child:
    inner = Script(provider="claude-code", session_id=key, report=report)
    builder = Story(report, inner, child=True)
    builder.play(sorted(nodes, key=lambda node: node.index), [])
    turns = builder.finish()
    script.usage.add(builder.usage())
    for model, replies in inner.models.items():
        script.models[model] = script.models.get(model, 0) + replies
    last = turns[-1] if turns else None
    return Child(
        key=key,
        prompt=turns[0].text if turns else "",
        model=next(iter(inner.models), ""),
        steps=[step for turn in turns for step in turn.steps],
        failed=last is not None and last.outcome == "failed" and bool(last.error),
        interrupted=last is not None and last.outcome == "interrupted",
    )


def _link_by_agent_id(children: list[Child], agents: dict[str, str], background: set[str]) -> None:
    for child in children:
        child.call_id = child.call_id or agents.get(child.key, "")
        child.background = child.call_id in background


def _count_children(children: list[Child], report: Report) -> None:
    if children:
        report.count("notes", "child session", len(children))
