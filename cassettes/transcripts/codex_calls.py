"""Tool calls of Codex rollouts: names, arguments, outputs and patches (transcript-formats §5)."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Literal

import msgspec

from cassettes.transcripts.script import FileDiff

JsonObject = dict[str, Any]
Tool = Literal["command", "patch", "mcp", "search", "image", "agent", "plan", "other"]

_SHELLS = {"shell", "exec_command", "shell_command", "local_shell", "container.exec", "bash", "unified_exec", "exec"}
_AGENTS = {
    "spawn_agent",
    "send_input",
    "wait_agent",
    "wait",
    "close_agent",
    "resume_agent",
    "send_message",
    "list_agents",
}
_EXIT = re.compile(r"(?:Exit code:|Process exited with code)\s*(-?\d+)")
_OUTPUT_MARK = re.compile(r"^Output:\n", re.MULTILINE)
_HEADER = re.compile(
    r"^(Chunk ID|Wall time|Exit code|Process (?:exited|running)|Original token count|Total output lines)\b"
)
_FAILED = (
    "apply_patch verification failed",
    "unsupported call:",
    "failed to parse",
    "exec_command failed",
    "execution error",
    "patch rejected",
    "failed in sandbox",
    "err: ",
)


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """Name, kind and arguments of a call in one form."""

    name: str
    tool: Tool
    input: JsonObject
    patch: str = ""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call in one form."""

    text: str
    exit_code: int | None = None
    failed: bool = False
    images: list[JsonObject] = msgspec.field(default_factory=list)


def read_call(payload: JsonObject) -> Call:
    """A `function_call`, `custom_tool_call`, `local_shell_call` or one of the server's own calls."""
    kind = payload.get("type")
    if kind == "local_shell_call":
        action = payload.get("action")
        return _shell("local_shell", action if isinstance(action, dict) else {})
    if kind == "web_search_call":
        action = payload.get("action")
        return Call(name="web_search", tool="search", input=dict(action) if isinstance(action, dict) else {})
    if kind == "image_generation_call":
        return Call(name="image_generation", tool="image", input={"prompt": _text(payload.get("revised_prompt"))})
    if kind == "tool_search_call":
        return Call(name="tool_search", tool="other", input=_arguments(payload.get("arguments")))
    name = _text(payload.get("name")) or "tool"
    if kind == "custom_tool_call":
        text = _text(payload.get("input"))
        if name == "apply_patch":
            return Call(name=name, tool="patch", input={"patch": text}, patch=text)
        if name == "exec":
            return Call(name=name, tool="command", input={"command": text})
        return Call(name=name, tool="other", input={"input": text})
    arguments = _arguments(payload.get("arguments"))
    namespace = _text(payload.get("namespace"))
    if name == "apply_patch":
        patch = _text(arguments.get("input")) or _text(arguments.get("patch")) or _text(arguments.get("text"))
        return Call(name=name, tool="patch", input={"patch": patch}, patch=patch)
    if name in _SHELLS:
        return _shell(name, arguments)
    if name == "write_stdin":
        return Call(name=name, tool="command", input={"command": _text(arguments.get("chars")), **arguments})
    if name == "update_plan":
        return Call(name=name, tool="plan", input=arguments)
    if name in _AGENTS:
        return Call(name=name, tool="agent", input=arguments)
    if name == "view_image":
        return Call(name=name, tool="image", input=arguments)
    if name.startswith("mcp__") or namespace.startswith("mcp__") or name.count("__") == 1:
        full = f"{namespace}__{name}" if namespace else name
        return Call(name=full, tool="mcp", input=arguments)
    return Call(name=name, tool="other", input=arguments)


def _arguments(value: object) -> JsonObject:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError):
            return {"text": value}
    if isinstance(value, dict):
        return value
    return {"value": value} if value is not None else {}


def _shell(name: str, arguments: JsonObject) -> Call:
    command = arguments.get("command", arguments.get("cmd"))
    parts = [part for part in command if isinstance(part, str)] if isinstance(command, list) else []
    line = command_line(parts) if parts else _text(command)
    given: JsonObject = {"command": line}
    cwd = _text(arguments.get("workdir")) or _text(arguments.get("working_directory")) or _text(arguments.get("cwd"))
    if cwd:
        given["cwd"] = cwd
    if _text(arguments.get("justification")):
        given["justification"] = arguments["justification"]
    if not line and arguments:
        given.update(arguments)
    patch = _patch_in(parts, line)
    if patch:
        return Call(
            name="apply_patch", tool="patch", input={"patch": patch, **({"cwd": cwd} if cwd else {})}, patch=patch
        )
    return Call(name=name, tool="command", input=given)


def command_line(parts: list[str]) -> str:
    """The command a person would type: `bash -lc X` is X."""
    if len(parts) == 3 and parts[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh") and parts[1] in ("-lc", "-c"):
        return parts[2]
    return shlex.join(parts)


def _patch_in(parts: list[str], line: str) -> str:
    if parts and parts[0] in ("apply_patch", "applypatch") and len(parts) > 1:
        return parts[1]
    start = line.find("*** Begin Patch")
    if start >= 0 and line.lstrip().startswith(("apply_patch", "applypatch", "cd ")) and "apply" in line[:start]:
        end = line.find("*** End Patch", start)
        if end > 0:
            return line[start : end + len("*** End Patch")]
    return ""


def read_output(value: object) -> Output:
    """`output` as text, as JSON text with metadata, as an object with `content`, as a list of parts, or null."""
    images: list[JsonObject] = []
    failed = False
    code: int | None = None
    if isinstance(value, dict):
        failed = value.get("success") is False
        value = value.get("content", value.get("output", value.get("text", "")))
    if isinstance(value, list):
        texts = []
        for part in value:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, dict):
                image = data_image(part.get("image_url"))
                if image is not None:
                    images.append(image)
                elif isinstance(part.get("text"), str):
                    texts.append(part["text"])
                else:
                    texts.append(f"[{part.get('type')}]")
        value = "\n".join(texts)
    text = _text(value)
    if text.startswith("{"):
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, dict) and isinstance(inner.get("output"), str):
            metadata = inner.get("metadata")
            if isinstance(metadata, dict) and isinstance(metadata.get("exit_code"), int):
                code = metadata["exit_code"]
            text = inner["output"]
    head, mark, tail = _split_header(text)
    found = _EXIT.search(head)
    if code is None and found:
        code = int(found.group(1))
    if mark:
        text = tail
    failed = failed or (code not in (None, 0)) or text.lower().startswith(_FAILED) or "aborted by user" in text[:200]
    return Output(text=text, exit_code=code, failed=failed, images=images)


def _split_header(text: str) -> tuple[str, bool, str]:
    if not _HEADER.match(text):
        return "", False, text
    found = _OUTPUT_MARK.search(text)
    return (text[: found.start()], True, text[found.end() :]) if found else (text[:400], False, text)


def data_image(url: object) -> JsonObject | None:
    """An inline image (`data:` URL) as a prompt block."""
    if isinstance(url, dict):
        url = url.get("url")
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    head, comma, data = url.partition(",")
    mime = head.removeprefix("data:").split(";")[0]
    if not comma or "base64" not in head or mime not in ("image/png", "image/jpeg", "image/webp") or not data:
        return {"type": "text", "text": f"[image: {mime or 'unknown'}]"}
    return {"type": "image", "mimeType": mime, "data": data}


def changes_of(value: object) -> list[FileDiff]:
    """The `changes` map of a FileChange item or a `patch_apply_end`."""
    found: list[FileDiff] = []
    if isinstance(value, list):
        value = {str(entry.get("path")): entry for entry in value if isinstance(entry, dict)}
    for path, change in value.items() if isinstance(value, dict) else ():
        if not isinstance(change, dict):
            continue
        kind = _text(change.get("type")) or _text(change.get("kind"))
        if kind not in ("add", "update", "delete") and len(change) == 1:
            kind, change = next(iter(change.items()))  # {"add": {"content": …}}
            change = change if isinstance(change, dict) else {}
        content = change.get("content")
        found.append(
            FileDiff(
                path=path,
                change=kind if kind in ("add", "delete") else "update",  # type: ignore[arg-type]
                diff=_text(change.get("unified_diff")) or _text(change.get("diff")),
                content=content if isinstance(content, str) else None,
                move_path=_text(change.get("move_path")),
            )
        )
    return found


def changes_in_patch(patch: str) -> list[FileDiff]:
    """The files of an apply-patch text. A hunk without line numbers keeps its envelope."""
    found: list[FileDiff] = []
    path, change, move, body = "", "", "", [""]

    def close() -> None:
        if not path:
            return
        if change == "add":
            text = "".join(line[1:] + "\n" for line in body if line.startswith("+"))
            found.append(FileDiff(path=path, change="add", content=text))
        elif change == "delete":
            found.append(FileDiff(path=path, change="delete"))
        else:
            inner = "\n".join(line for line in body if line)
            text = f"*** Begin Patch\n*** Update File: {path}\n{inner}\n*** End Patch\n"
            found.append(FileDiff(path=path, change="update", diff=text if inner else "", move_path=move))

    for line in patch.splitlines():
        for mark, kind in (("*** Add File: ", "add"), ("*** Update File: ", "update"), ("*** Delete File: ", "delete")):
            if line.startswith(mark):
                close()
                path, change, move, body = line.removeprefix(mark).strip(), kind, "", []
                break
        else:
            if line.startswith("*** Move to: "):
                move = line.removeprefix("*** Move to: ").strip()
            elif not line.startswith("*** "):
                body.append(line)
    close()
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
