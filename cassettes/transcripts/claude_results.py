"""Results of Claude Code tool calls: output, failure, changed files (transcript-formats §3.5)."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from cassettes.transcripts.claude_text import image_block
from cassettes.transcripts.script import FileDiff

JsonObject = dict[str, Any]
Tool = Literal["command", "patch", "mcp", "search", "image", "agent", "other"]

_TOOLS: dict[str, Tool] = {
    "Bash": "command",
    "PowerShell": "command",
    "Edit": "patch",
    "MultiEdit": "patch",
    "Write": "patch",
    "NotebookEdit": "patch",
    "WebSearch": "search",
    "WebFetch": "search",
    "Task": "agent",
    "Agent": "agent",
}
_BULKY = {
    "originalFile",
    "originalFileContents",
    "content",
    "base64",
    "fileContent",
}  # repeated elsewhere, or whole files
_EXIT = re.compile(r"^(?:Error: )?Exit code (\d+)")
_AGENT = re.compile(r"agentId: ([0-9A-Za-z_-]+)")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One tool result."""

    output: JsonObject
    failed: bool
    error: str
    changes: list[FileDiff]
    agent_id: str = ""


def tool_kind(name: str) -> Tool:
    """The kind of card of a tool."""
    return "mcp" if name.startswith("mcp__") else _TOOLS.get(name, "other")


def read_result(block: JsonObject, rich: object, name: str, call_input: JsonObject) -> Result:
    """A `tool_result` block together with the record's `toolUseResult`, where it belongs to this block."""
    text, images = _content(block.get("content"))
    failed = block.get("is_error") is True
    output: JsonObject = {}
    details = rich if isinstance(rich, dict) else {}
    if isinstance(details.get("stdout"), str):
        output["stdout"] = details["stdout"]
        if isinstance(details.get("stderr"), str) and details["stderr"]:
            output["stderr"] = details["stderr"]
        for member in ("interrupted", "backgroundTaskId"):
            if details.get(member):
                output[member] = details[member]
        if text and text.strip() != details["stdout"].strip():
            output["text"] = text
    else:
        if text or not images:
            output["text"] = text
        kept = {key: value for key, value in details.items() if key not in _BULKY | {"structuredPatch", "file"}}
        if kept:
            output["result"] = kept
    if images:
        output["content"] = images
    exit_code = _EXIT.match(text)
    if exit_code:
        output["exitCode"] = int(exit_code.group(1))
    error = ""
    if failed:
        error = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
        if not error and isinstance(rich, str):
            error = rich
    agent = details.get("agentId")
    found = _AGENT.search(text) if tool_kind(name) == "agent" else None
    return Result(
        output=output,
        failed=failed,
        error=error,
        changes=[] if failed else _changes(details, name, call_input),
        agent_id=agent if isinstance(agent, str) else (found.group(1) if found else ""),
    )


def _content(content: object) -> tuple[str, list[JsonObject]]:
    if isinstance(content, str):
        return content, []
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return "", []
    texts: list[str] = []
    images: list[JsonObject] = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict):
            kind = block.get("type")
            if kind == "image":
                image = image_block(block.get("source"))
                if image["type"] == "image":
                    images.append(image)
                else:
                    texts.append(image["text"])
            elif isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif kind == "tool_reference":
                texts.append(f"[tool: {block.get('tool_name') or block.get('name') or '?'}]")
            else:
                texts.append(f"[{kind}]")
    return "\n".join(texts), images


def _changes(details: JsonObject, name: str, call_input: JsonObject) -> list[FileDiff]:
    path = details.get("filePath") or call_input.get("file_path")
    if not isinstance(path, str) or tool_kind(name) != "patch":
        return []
    diff = unified(details.get("structuredPatch"))
    if diff:
        return [FileDiff(path=path, change="update", diff=diff)]
    content = details.get("content", call_input.get("content"))
    if name == "Write" and isinstance(content, str):
        created = details.get("type") != "update"
        return [FileDiff(path=path, change="add" if created else "update", content=content)]
    return []


def unified(patch: object) -> str:
    """A `structuredPatch` as a unified diff; empty where it is none."""
    lines: list[str] = []
    for hunk in patch if isinstance(patch, list) else []:
        if not isinstance(hunk, dict) or not isinstance(hunk.get("lines"), list):
            continue
        body = [line for line in hunk["lines"] if isinstance(line, str)]
        old = sum(1 for line in body if line[:1] in (" ", "-"))
        new = sum(1 for line in body if line[:1] in (" ", "+"))
        lines.append(f"@@ -{_number(hunk.get('oldStart'))},{old} +{_number(hunk.get('newStart'))},{new} @@")
        lines.extend(body)
    return "\n".join(lines) + "\n" if lines else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1
