"""Items, events and content of Codex rollouts in one form (transcript-formats §5)."""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.transcripts.codex_calls import Call, Output, command_line, data_image, read_output
from cassettes.transcripts.script import Usage

JsonObject = dict[str, Any]

_CONTEXT = (
    "<user_instructions>", "<environment_context>", "# AGENTS.md instructions", "<turn_aborted>", "<skill>",
    "<subagent_notification>", "<INSTRUCTIONS>", "<permissions", "<collaboration_mode>", "<app-context>",
    "<model_switch>", "<user_shell_command>", "<apps_instructions>", "<skills_instructions>", "<personality_spec>",
    "<plugins_instructions>", "<product text removed",
)  # fmt: skip


def other_item(kind: str, item: JsonObject, failed: bool) -> tuple[Call, Output, JsonObject]:
    if kind == "McpToolCall":
        result = item.get("result")
        given = item.get("arguments")
        name = f"mcp__{text_of(item.get('server'))}__{text_of(item.get('tool'))}"
        call = Call(name=name, tool="mcp", input=given if isinstance(given, dict) else {})
        output = read_output(result) if result is not None else Output(text=text_of(item.get("error")))
        return call, msgspec.structs.replace(output, failed=failed), {}
    if kind == "DynamicToolCall":
        given = item.get("arguments")
        call = Call(name=text_of(item.get("tool")), tool="other", input=given if isinstance(given, dict) else {})
        return call, msgspec.structs.replace(read_output(item.get("content_items")), failed=failed), {}
    if kind == "WebSearch":
        return Call(name="web_search", tool="search", input={"query": text_of(item.get("query"))}), Output(text=""), {}
    if kind == "ImageView":
        return Call(name="view_image", tool="image", input={"path": text_of(item.get("path"))}), Output(text=""), {}
    prompt = text_of(item.get("revised_prompt"))
    return Call(name="image_generation", tool="image", input={"prompt": prompt}), Output(text="", failed=failed), {}


def event_call(kind: str, payload: JsonObject) -> tuple[Call, Output, JsonObject]:
    """A call that only its end event tells of, and what that event adds to a known call."""
    if kind == "exec_command_end":
        parts = [part for part in payload.get("command") or [] if isinstance(part, str)]
        code = integer(payload.get("exit_code"))
        text = text_of(payload.get("aggregated_output")) or text_of(payload.get("stdout"))
        failed = code not in (None, 0) or payload.get("status") in ("failed", "declined")
        return (
            Call(name="exec_command", tool="command", input={"command": command_line(parts)}),
            Output(text=text, exit_code=code, failed=failed),
            {},
        )
    if kind == "patch_apply_end":
        failed = payload.get("success") is False or payload.get("status") in ("failed", "declined")
        text = text_of(payload.get("stdout")) or text_of(payload.get("stderr"))
        return Call(name="apply_patch", tool="patch", input={}), Output(text=text, failed=failed), {}
    if kind == "mcp_tool_call_end":
        invocation = payload.get("invocation")
        invocation = invocation if isinstance(invocation, dict) else {}
        result = payload.get("result")
        failed = isinstance(result, dict) and "Err" in result
        inner = result.get("Ok", result.get("Err")) if isinstance(result, dict) else result
        failed = failed or (isinstance(inner, dict) and inner.get("isError") is True)
        given = invocation.get("arguments")
        name = f"mcp__{text_of(invocation.get('server'))}__{text_of(invocation.get('tool'))}"
        call = Call(name=name, tool="mcp", input=given if isinstance(given, dict) else {})
        return call, msgspec.structs.replace(read_output(inner), failed=failed), {}
    if kind == "web_search_end":
        return (
            Call(name="web_search", tool="search", input={"query": text_of(payload.get("query"))}),
            Output(text=""),
            {},
        )
    if kind == "view_image_tool_call":
        return Call(name="view_image", tool="image", input={"path": text_of(payload.get("path"))}), Output(text=""), {}
    if kind == "dynamic_tool_call_response":
        failed = payload.get("success") is False
        output = msgspec.structs.replace(read_output(payload.get("content_items")), failed=failed)
        return Call(name=text_of(payload.get("tool")) or "tool", tool="other", input={}), output, {}
    if kind == "image_generation_end":
        prompt = text_of(payload.get("revised_prompt"))
        saved = text_of(payload.get("saved_path"))
        extra: JsonObject = {"savedFrom": saved.rsplit("/", 1)[-1]} if saved else {}
        return Call(name="image_generation", tool="image", input={"prompt": prompt}), Output(text=""), extra
    name = kind.removesuffix("_end").removeprefix("collab_")
    return Call(name=name, tool="agent", input={"prompt": text_of(payload.get("prompt"))}), Output(text=""), {}


def is_context(payload: JsonObject, text: str) -> bool:
    passed = payload.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    if isinstance(kinds, list) and kinds and all(isinstance(kind, str) for kind in kinds):
        known = [kind for kind in kinds if kind != "unknown"]
        if known:
            return not any(kind.startswith("user") for kind in known)
    return text.lstrip().startswith(_CONTEXT)


def content_blocks(content: object) -> tuple[list[JsonObject], str]:
    """Content parts as prompt blocks, and their text."""
    if isinstance(content, str):
        content = [{"text": content}]
    blocks: list[JsonObject] = []
    for part in content if isinstance(content, list) else []:
        if isinstance(part, str):
            part = {"text": part}
        if not isinstance(part, dict):
            continue
        text = part.get("text", part.get("output_text"))
        image = part.get("image_url") or part.get("url")
        if isinstance(text, str):
            if text.strip():
                blocks.append({"type": "text", "text": text})
        elif image is not None:
            blocks.append(data_image(image) or {"type": "text", "text": f"[image: {str(image)[:200]}]"})
        elif isinstance(part.get("path"), str):
            blocks.append({"type": "text", "text": f"[image: {part['path'][:200]}]"})
    joined = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    return blocks, joined


def texts_of(parts: object) -> list[str]:
    found = []
    for part in parts if isinstance(parts, list) else []:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and text.strip():
            found.append(text)
    return found


def usage_of(value: JsonObject) -> Usage:
    return Usage(
        input_tokens=integer(value.get("input_tokens")) or 0,
        output_tokens=integer(value.get("output_tokens")) or 0,
        cached_tokens=integer(value.get("cached_input_tokens")) or 0,
        reasoning_tokens=integer(value.get("reasoning_output_tokens")) or 0,
    )


def difference(later: Usage, earlier: Usage) -> Usage:
    names = Usage.__struct_fields__
    return Usage(**{name: max(0, getattr(later, name) - getattr(earlier, name)) for name in names})


def integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def plain(text: str) -> str:
    return " ".join(text.split())


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""
