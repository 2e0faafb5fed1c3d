"""Tool calls of the Agent Client Protocol as the tool messages of a session."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]

_KINDS = {"read": "read", "edit": "edit", "delete": "edit", "move": "edit", "search": "search", "execute": "execute"}
_KINDS["fetch"] = "fetch"
_FIELDS = ("title", "kind", "status", "rawInput", "rawOutput", "content", "locations")


def merged(known: JsonObject, update: JsonObject) -> JsonObject:
    """A call after an update: only the fields that it has are replaced, lists as wholes."""
    return {**known, **{name: update[name] for name in _FIELDS if update.get(name) is not None}}


def is_over(call: JsonObject) -> bool:
    """Whether a call has come to its end."""
    return call.get("status") in ("completed", "failed")


def payload(call: JsonObject, *, done: bool) -> JsonObject:
    """The tool message of a call."""
    title = str(call.get("title") or "Tool")
    body: JsonObject = {
        "name": title,
        "toolName": title,
        "callType": "tool",
        "title": title,
        "kind": _KINDS.get(str(call.get("kind")), "other"),
        "input": _object(call.get("rawInput")),
    }
    locations = [{"path": one["path"]} for one in _objects(call.get("locations")) if isinstance(one.get("path"), str)]
    if locations:
        body["locations"] = locations
    if done:
        body["output"] = _output(call)
        images = [block for block in _blocks(call) if block.get("type") == "image"]
        if images:
            body["content"] = images
        if call.get("status") == "failed":
            body["error"] = {"message": str(body["output"].get("text") or f"{title} failed")}
    return body


def file_changes(call: JsonObject) -> list[JsonObject]:
    """The files that the diffs of a call change."""
    changes: list[JsonObject] = []
    for one in _objects(call.get("content")):
        path, new = one.get("path"), one.get("newText")
        if one.get("type") != "diff" or not isinstance(path, str) or not isinstance(new, str):
            continue
        old = one.get("oldText")
        if isinstance(old, str):
            changes.append({"path": path, "change": "modified", "oldString": old, "newString": new})
        else:
            changes.append({"path": path, "change": "added", "content": new})
    return changes


def _output(call: JsonObject) -> JsonObject:
    texts = [str(block["text"]) for block in _blocks(call) if isinstance(block.get("text"), str)]
    raw = call.get("rawOutput")
    if not texts and isinstance(raw, str):
        texts = [raw]
    output: JsonObject = {"text": "\n".join(texts)} if texts else {}
    code = raw.get("exitCode", raw.get("exit_code")) if isinstance(raw, dict) else None
    if isinstance(code, int) and not isinstance(code, bool):
        output["exitCode"] = code
    return output


def _blocks(call: JsonObject) -> list[JsonObject]:
    """The content blocks inside the `content` entries of a call."""
    entries = [one for one in _objects(call.get("content")) if one.get("type") == "content"]
    return [one["content"] for one in entries if isinstance(one.get("content"), dict)]


def _objects(value: Any) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {} if value is None else {"value": value}
