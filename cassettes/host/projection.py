"""Paths of this machine to tokens of the document, and back (replay-state §9.2-§9.4).

Nothing here changes what it is given; values without a path in them are passed on as they are.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
from types import ModuleType
from typing import Any

from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.state import CWD_TOKEN, HOME_TOKEN

JsonObject = dict[str, Any]

PLAN_DECISION = "plan-decision:"
RUNTIME_OPERATION = "<runtime-operation>"
_SUBMIT = "client-submit:user:"
_IMAGES = "generated_images"
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class Projection:
    """From absolute paths below `base` (the root session's directory) to `${REPLAY_CWD}`."""

    def __init__(self, base: str) -> None:
        self._base = base.strip()
        self._known: dict[str, str] = {}

    def path(self, value: str) -> str:
        """The portable form. What is not absolute (T5) or not below the base stays as it is."""
        text = value.strip()
        if not text or not self._base or not _absolute(text):
            return value
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = _below(self._base, text, CWD_TOKEN) or text
        return found

    def walk(self, value: Any) -> Any:
        """Every string under a member whose name contains `path`, arrays included (T7)."""
        return _walk(value, self.path)

    def rail_key(self, kind: str, key: str, project_path: str) -> str:
        """`project:<path>` where it denotes exactly the project path."""
        if kind != "project" or not key.startswith("project:") or not project_path.strip():
            return key
        named = key.removeprefix("project:").strip()
        if named != project_path.strip() and _clean(named) != _clean(project_path.strip()):
            return key
        return f"project:{self.path(project_path)}"

    def asked(self, value: JsonObject) -> JsonObject:
        """The input of a tool or Interaction: approval projection, then the paths."""
        result = {name: item for name, item in value.items() if name != "cwd"}
        _shorten(result, "command")
        call = result.get("toolCall")
        if isinstance(call, dict):
            call = dict(call)
            _shorten(call, "title")
            if isinstance(call.get("input"), dict):
                call["input"] = {name: item for name, item in call["input"].items() if name != "cwd"}
                _shorten(call["input"], "command")
            result["toolCall"] = call
        walked: JsonObject = self.walk(result)
        return walked

    def tool_payload(self, payload: JsonObject, provider_home: str) -> JsonObject:
        """The payload of a tool call."""
        rest = dict(payload)
        given = rest.get("input")
        if isinstance(given, dict):
            rest["input"] = None
        output = rest.get("output")
        if isinstance(output, dict) and provider_home.strip():
            rest["output"] = _generated_images(output, provider_home.strip())
        walked: JsonObject = self.walk(rest)
        if isinstance(given, dict):
            walked["input"] = self.asked(given)
        return walked


class Resolution:
    """From `${REPLAY_CWD}` to a directory of this machine."""

    def __init__(self, root: str) -> None:
        if not _absolute(root):
            raise CassetteRejected(
                "The replay root is not an absolute path.",
                code="replay_root_invalid",
                found=root,
                hint="Give the replay a directory by its absolute path.",
            )
        self._root = posixpath.normpath(root) if root.startswith("/") else root

    def path(self, value: str, where: str = "") -> str:
        """The path on this machine; leaving the root is an error, everything without the token stays as it is."""
        text = value.strip()
        if text == CWD_TOKEN:
            return self._root
        if not text.startswith(CWD_TOKEN + "/"):
            return value
        joined = posixpath.normpath(posixpath.join(self._root, text[len(CWD_TOKEN) + 1 :].lstrip("/")))
        if joined != self._root and not joined.startswith(self._root.rstrip("/") + "/"):
            raise CassetteRejected(
                "A path of the state leaves the replay root.",
                code="state_path_escapes",
                place=Place(path=where),
                found=value,
                hint="The Cassette was tampered with; do not replay it.",
            )
        return joined

    def walk(self, value: Any, where: str = "") -> Any:
        """Every string under a member whose name contains `path`."""
        return _walk(value, lambda text: self.path(text, where))

    def rail_key(self, key: str, where: str = "") -> str:
        """A `project:` key with its path on this machine."""
        if not key.startswith("project:" + CWD_TOKEN):
            return key
        return "project:" + self.path(key.removeprefix("project:"), where)


def plan_decision(message_id: str, payload: JsonObject) -> tuple[str, JsonObject]:
    """Id and payload of a message without the operation id of a plan decision, which is random per run."""
    submit = payload.get("clientSubmitId")
    marker = PLAN_DECISION + RUNTIME_OPERATION
    if isinstance(submit, str) and submit.startswith(PLAN_DECISION):
        name = _SUBMIT + marker if message_id == _SUBMIT + submit else message_id
        return name, {**payload, "clientSubmitId": marker}
    notice, operation = payload.get("noticeKind"), payload.get("operationId")
    planned = isinstance(notice, str) and notice.startswith("plan_implementation_")
    if planned and isinstance(operation, str) and operation.strip():
        name = f"{marker}:status" if message_id == f"{PLAN_DECISION}{operation}:status" else message_id
        return name, {**payload, "operationId": RUNTIME_OPERATION}
    return message_id, payload


def same_path(left: str, right: str) -> bool:
    """Whether two paths are the same after cleaning; blank is only blank."""
    left, right = left.strip(), right.strip()
    return left == right or bool(left and right and _clean(left) == _clean(right))


def _walk(value: Any, change: Any, named: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            name: _walk(item, change, "path" in name.lower()) if isinstance(item, str | dict | list) else item
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_walk(item, change, named) for item in value]
    return change(value) if named and isinstance(value, str) else value


def _absolute(text: str) -> bool:
    return text.startswith("/") or _windows(text)


def _windows(text: str) -> bool:
    return bool(_DRIVE.match(text)) or text.startswith("\\\\")


def _flavour(text: str) -> ModuleType:
    return ntpath if _windows(text) else posixpath


def _clean(text: str) -> str:
    cleaned: str = _flavour(text).normpath(text)
    return "/" + cleaned.lstrip("/") if cleaned.startswith("//") else cleaned


def _below(base: str, text: str, token: str) -> str:
    """`token` and the rest of the path when it is `base` or below it, else ""."""
    if _windows(base) != _windows(text):
        return ""
    found = _relative(_clean(base), _clean(text), token)
    if not found and not _windows(base):  # perhaps one of them leads through a link
        found = _relative(_real(_clean(base)), _real(_clean(text)), token)
    return found


def _relative(base: str, text: str, token: str) -> str:
    if _windows(base):
        if ntpath.normcase(text) == ntpath.normcase(base):
            return token
        prefix = base.rstrip("\\") + "\\"
        if not ntpath.normcase(text).startswith(ntpath.normcase(prefix)):
            return ""
        return token + "/" + text[len(prefix) :].replace("\\", "/")
    if text == base:
        return token
    prefix = base.rstrip("/") + "/"
    return f"{token}/{text[len(prefix) :]}" if text.startswith(prefix) else ""


def _real(text: str) -> str:
    """With the links of its directories resolved, as far as they exist."""
    try:
        if os.path.isdir(text):  # noqa: PTH112 - cleaned texts, no Path semantics wanted
            return os.path.realpath(text)
        folder, name = posixpath.split(text)
        return posixpath.join(os.path.realpath(folder), name)
    except (OSError, ValueError):  # for example a NUL in a path that a provider invented
        return text


def _shorten(holder: JsonObject, name: str) -> None:
    """A command by its name: `/bin/zsh -lc x` is `zsh -lc x`."""
    value = holder.get(name)
    if not isinstance(value, str):
        return
    first, space, rest = value.strip().partition(" ")
    if _absolute(first):
        first = _flavour(first).basename(first)
    holder[name] = first + space + rest


def _generated_images(output: JsonObject, home: str) -> JsonObject:
    def token(value: Any) -> Any:
        if not isinstance(value, str) or not _absolute(value.strip()):
            return value
        found = _below(home, value.strip(), HOME_TOKEN)
        return found if found.startswith(f"{HOME_TOKEN}/{_IMAGES}/") else value

    result = dict(output)
    if "savedPath" in result:
        result["savedPath"] = token(result["savedPath"])
    if isinstance(result.get("savedPaths"), list):
        result["savedPaths"] = [token(item) for item in result["savedPaths"]]
    return result
