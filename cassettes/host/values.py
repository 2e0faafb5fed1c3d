"""Open JSON values of rows: owned copies, deep merge, growing texts, bounded output.

A row owns its objects. Merging makes new objects along the changed path and leaves the old ones alone, so an earlier
value stays whole for rollback; only texts that grow are changed in place.
"""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]

OUTPUT_LIMIT = 1 << 20  # bytes of one output text (provider-adapters §3.2)
TRUNCATED = "\n[output truncated]"
_KEPT = OUTPUT_LIMIT - len(TRUNCATED)


def own(value: Any) -> Any:
    """A copy of a JSON value whose objects and arrays belong to the row; texts are shared."""
    if isinstance(value, dict):
        return {name: own(item) if isinstance(item, dict | list) else item for name, item in value.items()}
    if isinstance(value, list):
        return [own(item) if isinstance(item, dict | list) else item for item in value]
    return value


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; `true` is not `1`, `1` is not `1.0`."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(item, right[name]) for name, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def merged(old: JsonObject, patch: JsonObject) -> JsonObject:
    """`old` with `patch` merged in deeply; the very same object when nothing changes. Arrays are replaced."""
    result = old
    for name, item in patch.items():
        if name in old:
            known = old[name]
            if isinstance(known, dict) and isinstance(item, dict):
                new: Any = merged(known, item)
                if new is known:
                    continue
            elif same(known, item):
                continue
            else:
                new = own(item)
        else:
            new = own(item)
        if result is old:
            result = dict(old)
        result[name] = new
    return result


def bounded(text: str) -> str:
    """`text` within `OUTPUT_LIMIT` bytes of UTF-8, cut between characters, the marker at its end where it was cut."""
    if len(text) * 4 <= OUTPUT_LIMIT:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= OUTPUT_LIMIT:
        return text
    return data[:_KEPT].decode("utf-8", "ignore") + TRUNCATED


def bounded_output(payload: JsonObject) -> JsonObject:
    """A tool payload whose `output` texts are within the limit; the same object when they are already."""
    output = payload.get("output")
    if isinstance(output, str):
        short = bounded(output)
        return payload if short is output else {**payload, "output": short}
    if not isinstance(output, dict):
        return payload
    cut = {name: bounded(item) for name, item in output.items() if isinstance(item, str) and len(item) * 4 > _KEPT}
    if all(output[name] is item for name, item in cut.items()):
        return payload
    return {**payload, "output": {**output, **cut}}


def share_text(payload: JsonObject) -> None:
    """Let equal `text` and `content` be one string, so that both grow for the price of one."""
    text, content = payload.get("text"), payload.get("content")
    if text is not content and isinstance(content, str) and content == text:
        payload["content"] = text


def grow_text(payload: JsonObject, delta: str) -> list[tuple[JsonObject, str, int]]:
    """Append to `text`, and to `content` where that is a text too. Returns how to shrink again.

    The payload lets go of the text first: the interpreter extends a string in place only while nobody else has it,
    and a growing message must not cost quadratic time.
    """
    text: Any = payload.get("text")
    content: Any = payload.get("content")
    if not isinstance(text, str):
        text = content if isinstance(content, str) else ""
    shrink = [(payload, "text", len(text))]
    if isinstance(content, str):
        shrink.append((payload, "content", len(content)))
    if content is text:
        payload["text"] = payload["content"] = None
        del content
        text += delta
        payload["text"] = payload["content"] = text
        return shrink
    payload["text"] = None
    text += delta
    payload["text"] = text
    if isinstance(content, str):
        payload["content"] = content + delta
    return shrink
