"""Thread items of the app-server as tool calls (provider-adapters §4.5)."""

from __future__ import annotations

import json
from typing import Any

JsonObject = dict[str, Any]
_CHANGE = {"add": "added", "delete": "deleted", "update": "modified"}


def call_status(item: JsonObject) -> str:
    """`in_progress`, `completed` or `failed`."""
    status = str(item.get("status") or "inProgress")
    return {"inProgress": "in_progress", "declined": "failed"}.get(status, status)


def call_payload(item: JsonObject, *, done: bool) -> JsonObject | None:
    """The tool message of an item, or None for an item that is no call."""
    maker = _MAKERS.get(str(item.get("type")))
    return maker(item, done) if maker is not None else None


def failed(item: JsonObject) -> bool:
    """Did the call of a completed item fail?"""
    if call_status(item) == "failed":
        return True
    result = item.get("result")
    if item.get("type") == "mcpToolCall":
        return bool(item.get("error")) or (isinstance(result, dict) and result.get("isError") is True)
    return item.get("type") == "dynamicToolCall" and item.get("success") is False


def file_changes(item: JsonObject) -> list[JsonObject]:
    """Changed files of a `fileChange` item, for the Turn."""
    if item.get("type") != "fileChange":
        return []
    found = []
    for change in item.get("changes") or []:
        if not isinstance(change, dict) or not isinstance(change.get("path"), str):
            continue
        kind = change.get("kind")
        word = str(kind.get("type") if isinstance(kind, dict) else kind or "update")
        entry: JsonObject = {"path": change["path"], "change": _CHANGE.get(word, "modified")}
        diff = change.get("diff")
        if isinstance(diff, str) and diff:
            entry["diff"] = diff
        found.append(entry)
    return found


def reasoning_text(item: JsonObject) -> str:
    """Text of a reasoning item: summary, else content, else text; sections joined by a blank line."""
    for name in ("summary", "content"):
        parts = item.get(name)
        if isinstance(parts, list) and parts:
            texts = [part if isinstance(part, str) else str(part.get("text") or "") for part in parts if part]
            joined = "\n\n".join(text for text in texts if text)
            if joined:
                return joined
    return str(item.get("text") or "")


def _call(name: str, title: str, kind: str, given: JsonObject, **more: Any) -> JsonObject:
    body = {"name": name, "toolName": name, "callType": "tool", "title": title, "kind": kind, "input": given}
    return {**body, **{key: value for key, value in more.items() if value not in (None, "", [])}}


def _command(item: JsonObject, done: bool) -> JsonObject:
    command = str(item.get("command") or "")
    given = {"command": command, **({"cwd": item["cwd"]} if item.get("cwd") else {})}
    payload = _call("shell", command or "Run command", "execute", given)
    if done:
        output: JsonObject = {}
        if isinstance(item.get("aggregatedOutput"), str):
            output["stdout"] = item["aggregatedOutput"]
        if isinstance(item.get("exitCode"), int):
            output["exitCode"] = item["exitCode"]
        payload["output"] = output
    return payload


def _file_change(item: JsonObject, done: bool) -> JsonObject:
    changes = [change for change in item.get("changes") or [] if isinstance(change, dict)]
    locations = [{"path": str(change.get("path") or "")} for change in changes]
    given = {"changes": changes, **({"cwd": item["cwd"]} if item.get("cwd") else {})}
    return _call("apply_patch", "Edit", "edit", given, locations=locations)


def _mcp(item: JsonObject, done: bool) -> JsonObject:
    name = f"{item.get('server') or ''}.{item.get('tool') or ''}".strip(".")
    payload = _call(name, name, "other", _object(item.get("arguments")))
    result = item.get("result")
    if done and isinstance(result, dict):
        kept = ("content", "structuredContent", "isError")
        payload["output"] = {key: result[key] for key in kept if result.get(key) is not None}
        text = _texts(result.get("content"))
        if text:
            payload["output"]["text"] = text
    return payload


def _web_search(item: JsonObject, done: bool) -> JsonObject:
    query, action = str(item.get("query") or ""), _object(item.get("action"))
    url = str(action.get("url") or "")
    title = f"Searching for: {query}" if query else f"Visiting: {url}" if url else "WebSearch"
    given = {"query": query, **({"action": action} if action else {})}
    return _call("web_search", title, "fetch", given)


def _dynamic(item: JsonObject, done: bool) -> JsonObject:
    name = str(item.get("tool") or "Tool")
    payload = _call(name, name, "other", _object(item.get("arguments")))
    if done:
        content = item.get("contentItems")
        payload["output"] = {"text": _texts(content)} if _texts(content) else {}
        if isinstance(content, list) and any(_is_image(block) for block in content):
            payload["content"] = [block for block in content if _is_image(block)]
    return payload


def _collab(item: JsonObject, done: bool) -> JsonObject:
    name = str(item.get("tool") or "Tool")
    kind = "other" if name in ("close", "wait", "closeAgent", "waitAgent") else "execute"
    given: JsonObject = {"receiverThreadIds": item.get("receiverThreadIds") or []}
    if item.get("prompt"):
        given["task"] = item["prompt"]
    if item.get("agentName"):
        given["agentName"] = item["agentName"]
    payload = _call(name, name, kind, given, callType="subagent")
    if done:
        names = ("message", "result", "output", "stderr")
        payload["output"] = {key: item[key] for key in names if item.get(key) is not None}
    return payload


def _image_generation(item: JsonObject, done: bool) -> JsonObject:
    payload = _call("image_generation", "Generate image", "other", {})
    if done:
        names = ("savedPath", "revisedPrompt")
        payload["output"] = {key: item[key] for key in names if item.get(key)}
    return payload


def _image_view(item: JsonObject, done: bool) -> JsonObject:
    path = str(item.get("path") or "")
    return _call("view_image", "View image", "read", {"path": path}, locations=[{"path": path}] if path else None)


_MAKERS = {
    "commandExecution": _command,
    "fileChange": _file_change,
    "mcpToolCall": _mcp,
    "webSearch": _web_search,
    "dynamicToolCall": _dynamic,
    "collabAgentToolCall": _collab,
    "imageGeneration": _image_generation,
    "imageView": _image_view,
}


def _object(value: Any) -> JsonObject:
    if isinstance(value, dict):
        return value
    if isinstance(value, str) and value[:1] == "{":
        try:
            decoded = json.loads(value)
        except ValueError:
            return {"text": value}
        return decoded if isinstance(decoded, dict) else {"text": value}
    return {} if value is None else {"value": value}


def _texts(content: Any) -> str:
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str) and block["text"])


def _is_image(block: Any) -> bool:
    return isinstance(block, dict) and "image" in str(block.get("type", "")).lower()
