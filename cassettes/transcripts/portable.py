"""Make the values of a transcript portable: no machine paths under path members, no secrets, nothing unencodable.

A transcript keeps the paths and texts of one machine. Free text stays as it is; *structured* members that the audits
of a Cassette refuse (provider-tape §6.2, replay-state §9.1) are written as tokens or left empty, and counted.
"""

from __future__ import annotations

import json
import posixpath
from typing import Any

from cassettes.providers.value_audit import PATH_FIELDS, PORTABLE_EMAIL, folded, is_machine_path
from cassettes.transcripts.script import Report

JsonObject = dict[str, Any]

CWD_TOKEN = "${REPLAY_CWD}"
OUTSIDE_TOKEN = "${REPLAY_OUTSIDE}"
MAX_TEXT = 1024 * 1024  # characters of one text in a tool call; the tape's frame limit is 8 MiB
MAX_IMAGE = 5 * 1024 * 1024  # characters of base64
_SECRETS = {"accesstoken", "refreshtoken", "apikey", "authorization"}
_ACCOUNTS = {"chatgptaccountid", "accountid", "creatoraccountuserid"}
_MAX_DEPTH = 60


class Portable:
    """Projects values of one session, whose working directory is `cwd`."""

    def __init__(self, cwd: str, report: Report) -> None:
        self._cwd = posixpath.normpath(cwd) if cwd.startswith("/") else cwd.rstrip("/\\")
        self._report = report

    def text(self, text: str, limit: int = MAX_TEXT) -> str:
        """Text that UTF-8 can hold, of bounded length."""
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            self._report.count("changed", "lone surrogate replaced")
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if len(text) > limit:
            self._report.count("changed", "long text shortened")
            text = text[:limit] + f"\n… {len(text) - limit} characters more in the transcript"
        return text

    def path(self, path: str) -> str:
        """A path as a token where it names a place on a machine; relative paths stay."""
        given = self.text(path)
        plain = given.strip()
        if plain[:7].lower() == "file://":
            plain = plain[7:]
        if not is_machine_path(plain) and plain == given.strip():
            return given
        clean = posixpath.normpath(plain) if plain.startswith("/") else plain
        if self._cwd and clean == self._cwd:
            return CWD_TOKEN
        if self._cwd and clean[: len(self._cwd)] == self._cwd and clean[len(self._cwd)] in "/\\":
            return f"{CWD_TOKEN}/" + clean[len(self._cwd) + 1 :].replace("\\", "/")
        if not is_machine_path(clean):
            return clean
        return OUTSIDE_TOKEN + ("" if clean.startswith("/") else "/") + clean.replace("\\", "/")

    def object(self, value: JsonObject) -> JsonObject:
        """An object that every audit accepts."""
        done = self.value(value)
        return done if isinstance(done, dict) else {"text": done}

    def value(self, value: Any, name: str = "", depth: int = 0) -> Any:
        """Any value; `name` is the member it stands under (arrays hand theirs on)."""
        if isinstance(value, str):
            if self._is_path_name(name):
                return self.path(value)
            return self.text(value, MAX_IMAGE if name in ("data", "url") else MAX_TEXT)
        if isinstance(value, list):
            if depth > _MAX_DEPTH:
                return self._as_text(value)
            return [self.value(element, name, depth + 1) for element in value]
        if isinstance(value, dict):
            if depth > _MAX_DEPTH or "workspaceId" in value:
                return self._as_text(value)
            return {self.text(key): self._member(key, inner, depth) for key, inner in value.items()}
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return str(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
            return str(value)
        return value

    def _member(self, key: str, value: Any, depth: int) -> Any:
        name = folded(key)
        plain = name.replace("_", "").replace("-", "")
        if name == "email" and isinstance(value, str) and value.strip() and value != PORTABLE_EMAIL:
            self._report.count("changed", "address masked")
            return PORTABLE_EMAIL
        if plain in _SECRETS and (isinstance(value, dict | list) or (isinstance(value, str) and value.strip())):
            self._report.count("changed", "credential left out")
            return None
        if plain in _ACCOUNTS and value is not None and value != "":
            self._report.count("changed", "account identity left out")
            return None
        return self.value(value, key, depth + 1)

    def _is_path_name(self, name: str) -> bool:
        plain = folded(name)
        return "path" in plain or plain in PATH_FIELDS

    def _as_text(self, value: Any) -> str:
        self._report.count("changed", "structure written as text")
        return self.text(json.dumps(value, ensure_ascii=False))
