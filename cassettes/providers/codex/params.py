"""Settings and prompts as parameters of the app-server (provider-adapters §4.1-§4.3)."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
CLIENT = {"name": "reprise", "title": "Reprise", "version": "0.1.0"}
SPARK = "gpt-5.3-codex-spark"
_EFFORTS = {"minimal", "low", "medium", "high", "xhigh", "max", "ultra"}
_SANDBOX = {"read-only": "read-only", "auto": "workspace-write", "full-access": "danger-full-access"}
_POLICY = {"read-only": "readOnly", "auto": "workspaceWrite", "full-access": "dangerFullAccess"}
_REVIEWER = {"read-only": "user", "auto": "auto_review"}


def initialize() -> JsonObject:
    """Parameters of `initialize`."""
    return {"clientInfo": dict(CLIENT), "capabilities": {"experimentalApi": True}}


def thread_params(cwd: str, settings: JsonObject) -> JsonObject:
    """Parameters of `thread/start` and `thread/resume`, without the thread id."""
    params: JsonObject = {"cwd": cwd or "/"}
    model = _text(settings, "model")
    if model:
        params["model"] = model
    config: JsonObject = {}
    if _effort(settings):
        config["model_reasoning_effort"] = _effort(settings)
    if _text(settings, "speed") in ("fast", "priority"):
        config["service_tier"] = "fast"
    if not model or model == SPARK:
        config["model_reasoning_summary"] = "auto"
    if config:
        params["config"] = config
    mode = _text(settings, "permissionModeId")
    if mode in _SANDBOX:
        params["approvalPolicy"] = "never" if mode == "full-access" else "on-request"
        params["sandbox"] = _SANDBOX[mode]
        if mode in _REVIEWER:
            params["approvalsReviewer"] = _REVIEWER[mode]
    return params


def turn_params(thread_id: str, content: list[JsonObject], settings: JsonObject, submit_id: str) -> JsonObject:
    """Parameters of `turn/start`."""
    params: JsonObject = {"threadId": thread_id, "input": user_input(content)}
    model, effort = _text(settings, "model"), _effort(settings)
    if model:
        params["model"] = model
    if effort:
        params["effort"] = effort
    if model == SPARK:
        params["summary"] = "none"
    mode = _text(settings, "permissionModeId")
    if mode in _POLICY:
        params["approvalPolicy"] = "never" if mode == "full-access" else "on-request"
        params["sandboxPolicy"] = {"type": _POLICY[mode]}
        if mode in _REVIEWER:
            params["approvalsReviewer"] = _REVIEWER[mode]
    if model:
        plan = bool(settings.get("planMode"))
        inner: JsonObject = {"model": model, "reasoning_effort": effort or None}
        params["collaborationMode"] = {"mode": "plan" if plan else "default", "settings": inner}
    if submit_id:
        params["clientUserMessageId"] = submit_id
    return params


def user_input(content: list[JsonObject]) -> list[JsonObject]:
    """Prompt blocks as the app-server takes them."""
    items: list[JsonObject] = []
    for block in content:
        kind = block.get("type")
        if kind == "text":
            items.append({"type": "text", "text": str(block.get("text") or "")})
        elif kind == "image" and block.get("data"):
            items.append(
                {"type": "image", "url": f"data:{block.get('mimeType') or 'image/png'};base64,{block['data']}"}
            )
        elif kind == "image" and block.get("url"):
            items.append({"type": "image", "url": str(block["url"])})
        elif kind in ("skill", "mention"):
            items.append(
                {"type": str(kind), "name": str(block.get("name") or ""), "path": str(block.get("path") or "")}
            )
    return items


def _effort(settings: JsonObject) -> str:
    effort = _text(settings, "reasoningEffort")
    return effort.lower() if effort.lower() in _EFFORTS else effort


def _text(settings: JsonObject, name: str) -> str:
    value = settings.get(name)
    return value.strip() if isinstance(value, str) else ""
