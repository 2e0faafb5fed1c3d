"""Tool payloads of the sidecar (provider-adapters §5.4)."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
_KINDS = {
    "Bash": "execute",
    "PowerShell": "execute",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Read": "read",
    "Glob": "search",
    "Grep": "search",
    "LS": "read",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    "Task": "execute",
    "Agent": "execute",
}
_KEPT = ("input", "output", "locations", "content", "title")
_DIFFS = ("diff", "patch", "unifiedDiff", "unified_diff")


def call_id(body: JsonObject) -> str:
    """Id of the call: `toolCallId`, else `callId`, else `id`."""
    return next((str(body[name]) for name in ("toolCallId", "callId", "id") if body.get(name)), "")


def payload(body: JsonObject) -> JsonObject:
    """The tool message of an event."""
    name = str(body.get("name") or body.get("toolName") or "tool")
    made: JsonObject = {
        "name": name,
        "toolName": str(body.get("toolName") or name),
        "callType": str(body.get("callType") or "tool"),
        "kind": _KINDS.get(name, "other"),
    }
    for member in _KEPT:
        if body.get(member) not in (None, "", []):
            made[member] = _plain_diffs(body[member])
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata:
        made["metadata"] = _reduced(metadata)
    changes = body.get("fileChanges")
    if isinstance(changes, dict) and changes:
        made["fileChanges"] = _plain_diffs(changes)
    return made


def file_changes(body: JsonObject) -> list[JsonObject]:
    """Files that a completed call changed."""
    changes = body.get("fileChanges")
    files = changes.get("files") if isinstance(changes, dict) else None
    return [_plain_diffs(one) for one in files if isinstance(one, dict)] if isinstance(files, list) else []


def _reduced(metadata: JsonObject) -> JsonObject:
    """Metadata with the tool's own response cut down to what is known to be small."""
    response = metadata.get("claudeToolResponse")
    if not isinstance(response, dict):
        return metadata
    kept = {name: response[name] for name in ("agentId", "durationMs") if name in response}
    return {**metadata, "claudeToolResponse": kept}


def _plain_diffs(value: Any) -> Any:
    """Diff texts with LF line ends and the no-newline marker at the left."""
    if isinstance(value, list):
        return [_plain_diffs(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _plain_diff(item) if name in _DIFFS and isinstance(item, str) else _plain_diffs(item)
        for name, item in value.items()
    }


def _plain_diff(text: str) -> str:
    lines = text.replace("\r\n", "\n").split("\n")
    marker = "\\ No newline at end of file"
    return "\n".join(marker if line.strip() == marker else line for line in lines)
