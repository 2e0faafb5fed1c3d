"""The value audit of provider traffic: secrets, account identities and machine paths (spec: provider-tape §6.2).

A finding names the JSON path, never the value. The walk uses no recursion: protocol values may be nested deeply.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

PORTABLE_EMAIL = "replay-user@example.invalid"
PATH_FIELDS = frozenset(
    {
        "cwd",
        "cwds",
        "path",
        "paths",
        "projectpath",
        "project_path",
        "savedpath",
        "savedpaths",
        "workingdirectory",
        "working_directory",
        "statedirectory",
        "state_directory",
    }
)
_SECRETS = frozenset({"accesstoken", "refreshtoken", "apikey", "authorization"})
_ACCOUNTS = frozenset({"chatgptaccountid", "accountid", "creatoraccountuserid"})
_DRIVE = re.compile(r"[A-Za-z]:")
_FILE_URL = "file://"

Members = tuple[tuple[str, Any], ...]
"""An object as its members in order, duplicates kept."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be in a portable artifact; `kind` is a stable code."""

    kind: str  # credential_method, sensitive_field, non_portable_path
    path: str


@dataclass(frozen=True, slots=True)
class _Node:
    """A place in a value; its path is only spelled out for a finding."""

    parent: _Node | None
    step: str

    def path(self) -> str:
        steps = []
        node: _Node | None = self
        while node is not None:
            steps.append(node.step)
            node = node.parent
        return "".join(reversed(steps))


def folded(name: str) -> str:
    """A member or method name as rules compare it: trimmed, case ignored."""
    return name.strip().lower()


def is_path_field(name: str) -> bool:
    """Whether strings under this member are paths (§5.5)."""
    return folded(name) in PATH_FIELDS


def is_machine_path(text: str) -> bool:
    """Whether a path field's text names a place on one machine; tokens, `~/x` and relative paths do not."""
    value = text.strip()
    if value.lower().startswith(_FILE_URL):
        value = value[len(_FILE_URL) :]
    return value.startswith(("/", "\\")) or bool(_DRIVE.match(value))


def _is_sensitive(name: str, value: object) -> bool:
    """Sensitive members in any spelling: `accessToken`, `access_token`, `Access-Token`."""
    text = value.strip() if isinstance(value, str) else None
    if name == "email":
        return bool(text) and text != PORTABLE_EMAIL
    plain = name.replace("_", "").replace("-", "")
    if plain in _SECRETS:
        return bool(text) or isinstance(value, dict | list | tuple)
    if plain in _ACCOUNTS:
        return value is not None and text != ""
    return False


def is_audited(name: str) -> bool:
    """Whether the audit looks at what stands under this member name."""
    lowered = folded(name)
    plain = lowered.replace("_", "").replace("-", "")
    return lowered == "email" or lowered in PATH_FIELDS or plain in _SECRETS or plain in _ACCOUNTS


def is_reported(name: str, value: str) -> bool:
    """Whether this text under this member name is a finding."""
    lowered = folded(name)
    return _is_sensitive(lowered, value) or (lowered in PATH_FIELDS and is_machine_path(value))


def _holds_machine_path(value: object) -> bool:
    if isinstance(value, str):
        return is_machine_path(value)
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, str) and is_machine_path(item):
            return True
    return False


def _members(value: Any) -> Iterable[tuple[str, Any]] | None:
    if isinstance(value, dict):
        return value.items()
    return value if isinstance(value, tuple) else None


def findings(value: Any) -> Iterator[Finding]:
    """Every finding in one decoded value: objects as `dict`, or as `Members` where duplicates must count."""
    pending: list[tuple[Any, _Node]] = [(value, _Node(None, "$"))]
    while pending:
        item, node = pending.pop()
        members = _members(item)
        if members is not None:
            inner = []
            for name, member in members:
                lowered = folded(name)
                if _is_sensitive(lowered, member):
                    yield Finding("sensitive_field", _Node(node, f".{name}").path())
                elif lowered in PATH_FIELDS and _holds_machine_path(member):
                    yield Finding("non_portable_path", _Node(node, f".{name}").path())
                if isinstance(member, dict | list | tuple):
                    inner.append((member, _Node(node, f".{name}")))
            pending.extend(reversed(inner))
        elif isinstance(item, list):
            pending.extend(
                (element, _Node(node, f"[{index}]"))
                for index, element in reversed(list(enumerate(item)))
                if isinstance(element, dict | list | tuple)
            )


def audit_value(value: Any) -> Finding | None:
    """The first finding in one decoded protocol value, or None."""
    return next(findings(value), None)


def credential_method(value: Any, methods: Collection[str]) -> Finding | None:
    """A message (or a message of a batch) that calls a credential method of its provider, or None."""
    if not methods:
        return None
    wanted = {folded(method) for method in methods}
    messages = enumerate(value) if isinstance(value, list) else [(-1, value)]
    for index, message in messages:
        for name, method in _members(message) or ():
            if name == "method" and isinstance(method, str) and folded(method) in wanted:
                return Finding("credential_method", "$.method" if index < 0 else f"$[{index}].method")
    return None


def audit_values(values: Iterable[Any], credential_methods: Collection[str] = ()) -> Finding | None:
    """The first finding in a sequence of messages: credential methods, then the value audit, message by message."""
    for value in values:
        finding = credential_method(value, credential_methods) or audit_value(value)
        if finding is not None:
            return finding
    return None
