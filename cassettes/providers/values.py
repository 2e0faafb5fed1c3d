"""Walks over protocol values that matching, projection and delivery share (provider-tape §5, §9, §10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cassettes.core.jsontext import compact
from cassettes.providers.ports import Provider
from cassettes.providers.value_audit import PATH_FIELDS, folded

JsonObject = dict[str, Any]
HOME_TOKEN = "${REPLAY_HOME}"


def map_paths(value: Any, replace: Callable[[str], str]) -> Any:
    """`value` with the strings of its path fields replaced; the very same object where nothing changed (§5.5)."""
    if isinstance(value, list):
        items = [map_paths(item, replace) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    result = value
    for name, item in value.items():
        new = _path_value(item, replace) if folded(name) in PATH_FIELDS else map_paths(item, replace)
        if new is not item:
            result = dict(result) if result is value else result
            result[name] = new
    return result


def swap_root(text: str, root: str, other: str) -> str:
    """`text` with its root replaced, where it is the root or lies below it. The match is textual."""
    if not root:
        return text
    if text == root:
        return other
    if text.startswith(root) and text[len(root)] in "/\\":
        return other + text[len(root) :]
    return text


def neutral_request(message: Any, provider: Provider) -> Any:
    """Generated request fields as their portable value (§5.4 step 3)."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return message
    params = message.get("params")
    if not isinstance(params, dict):
        return message
    for method, parameter, prefix, portable in provider.generated_request_fields:
        if message["method"].strip() != method:
            continue
        for name, item in params.items():
            if folded(name) == parameter and isinstance(item, str) and item.startswith(prefix) and item != portable:
                return {**message, "params": {**params, name: portable}}
    return message


def without_environment(message: Any, provider: Provider) -> Any:
    """A `start` request without its environment, where the provider's is excluded (§5.4 step 4)."""
    if not provider.environment_excluded or not isinstance(message, dict) or message.get("type") != "start":
        return message
    payload = message.get("payload")
    if not isinstance(payload, dict) or "env" not in payload:
        return message
    return {**message, "payload": {name: item for name, item in payload.items() if name != "env"}}


def id_key(value: Any) -> str:
    """Key of a message id: its compact JSON, so that `18` and `"18"` differ (§7.2)."""
    return compact(value)


def _path_value(value: Any, replace: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        new = replace(value)
        return value if new == value else new
    if isinstance(value, list):
        items = [_direct(item, replace) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return map_paths(value, replace)


def _direct(item: Any, replace: Callable[[str], str]) -> Any:
    """An element of an array under a path field: strings are mapped, arrays in it are not."""
    if isinstance(item, str):
        new = replace(item)
        return item if new == item else new
    return item if isinstance(item, list) else map_paths(item, replace)
