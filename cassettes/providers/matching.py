"""Is what the session sends what was recorded? (provider-tape §9)"""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.core.errors import CassetteRejected
from cassettes.core.jsontext import decode_values, first_difference
from cassettes.providers.ports import Provider
from cassettes.providers.value_audit import folded
from cassettes.providers.values import (
    HOME_TOKEN,
    id_key,
    map_paths,
    neutral_request,
    swap_root,
    without_environment,
)

JsonObject = dict[str, Any]
_NEUTRAL = "<client>"


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one comparison. `path` and `reason` say where and why it failed."""

    matched: bool
    reason: str = ""
    path: str = ""
    not_asserted: tuple[str, ...] = ()


class Matcher:
    """Compares sends with recorded frames, and remembers which live ids stand for recorded ones."""

    def __init__(self, provider: Provider, *, cwd_token: str, cwd: str, home: str) -> None:
        self.response_ids: dict[str, Any] = {}  # recorded id key -> live id
        self.identities: dict[str, str] = {}  # recorded identity -> live identity
        self._provider = provider
        self._cwd_token = cwd_token
        self._cwd = cwd
        self._home = home

    def match(self, recorded: bytes, live: bytes) -> Match:
        """Compare; what was learned is kept only when they match."""
        try:
            expected, found = decode_values(recorded), decode_values(live)
        except CassetteRejected:
            same = recorded == live
            return Match(matched=same, reason="" if same else "the bytes differ")
        if len(expected) != len(found):
            return Match(matched=False, reason=f"{len(found)} messages instead of {len(expected)}")
        ids: dict[str, Any] = {}
        identities: dict[str, str] = {}
        open_parameters: list[str] = []
        for left, right in zip(expected, found, strict=True):
            outcome = self._pair(left, right, ids, identities, open_parameters)
            if outcome is not None:
                return outcome
        self.response_ids.update(ids)
        self.identities.update(identities)
        return Match(matched=True, not_asserted=tuple(open_parameters))

    def to_live(self, value: Any) -> Any:
        """A recorded value with live paths."""
        return map_paths(value, self._path)

    def _path(self, text: str) -> str:
        return swap_root(swap_root(text, self._cwd_token, self._cwd), HOME_TOKEN, self._home)

    def _pair(
        self,
        recorded: Any,
        live: Any,
        ids: dict[str, Any],
        identities: dict[str, str],
        open_parameters: list[str],
    ) -> Match | None:
        left, right = self._neutral(recorded, open_parameters), self._neutral(live, [])
        left = self.to_live(left)
        if isinstance(left, dict) and isinstance(right, dict) and self._is_request(left) and self._is_request(right):
            if ("id" in left) != ("id" in right):
                return Match(matched=False, reason="one side is a request, the other a notification", path="$.id")
            if "id" in left:
                ids[id_key(left["id"])] = right["id"]
                right = {**right, "id": left["id"]}
        aligned, conflict = self._align(left, right, identities, "$")
        if conflict:
            return Match(matched=False, reason="one recorded identity stands for two live ones", path=conflict)
        difference = first_difference(left, aligned)
        if difference is not None:
            return Match(matched=False, reason="the session sent something else than was recorded", path=difference)
        return None

    def _is_request(self, message: JsonObject) -> bool:
        return isinstance(message.get(self._provider.request_member), str)

    def _neutral(self, message: Any, open_parameters: list[str]) -> Any:
        message = without_environment(neutral_request(message, self._provider), self._provider)
        if not isinstance(message, dict) or message.get("method") != "initialize":
            return message
        params = message.get("params")
        client = params.get("clientInfo") if isinstance(params, dict) else None
        if not isinstance(client, dict):
            return message
        assert isinstance(params, dict)
        neutral = {name: _NEUTRAL if name in ("version", "title") else item for name, item in client.items()}
        open_parameters += [f"initialize: params.clientInfo.{name}" for name in ("version", "title") if name in client]
        return {**message, "params": {**params, "clientInfo": neutral}}

    def _align(self, recorded: Any, live: Any, fresh: dict[str, str], path: str) -> tuple[Any, str]:
        """`live` with identity members replaced by their recorded value, or the path of a conflict (§9.2)."""
        if isinstance(recorded, list) and isinstance(live, list) and len(recorded) == len(live):
            items = []
            for number, (left, right) in enumerate(zip(recorded, live, strict=True)):
                item, conflict = self._align(left, right, fresh, f"{path}[{number}]")
                if conflict:
                    return live, conflict
                items.append(item)
            return items, ""
        if not isinstance(recorded, dict) or not isinstance(live, dict):
            return live, ""
        result = dict(live)
        for name, left in recorded.items():
            if name not in live:
                continue
            right, here = live[name], f"{path}.{name}"
            if self._is_identity(name) and (isinstance(left, str) or isinstance(right, str)):
                if type(left) is not type(right):
                    return live, here
                if left and right:
                    known = fresh.get(left) or self.identities.get(left)
                    if known is not None and known != right:
                        return live, here
                    fresh[left] = right
                    result[name] = left
                continue
            result[name], conflict = self._align(left, right, fresh, here)
            if conflict:
                return live, conflict
        return result, ""

    def _is_identity(self, name: str) -> bool:
        plain = folded(name)
        provider = self._provider
        return plain in provider.generated_identity_fields or plain in provider.match_only_identity_fields


def is_optional_probe(data: bytes, provider: Provider) -> bool:
    """Exactly one JSON object whose method is an optional probe."""
    return _probe(data, provider) is not None


def probe_id(data: bytes, provider: Provider) -> str | None:
    """Key of the id of a recorded probe request, or None."""
    probe = _probe(data, provider)
    return id_key(probe["id"]) if probe is not None and "id" in probe else None


def _probe(data: bytes, provider: Provider) -> JsonObject | None:
    if not any(method.encode() in data.lower() for method in provider.optional_probes):
        return None
    try:
        values = decode_values(data)
    except CassetteRejected:
        return None
    if len(values) != 1 or not isinstance(values[0], dict):
        return None
    method = values[0].get("method")
    return values[0] if isinstance(method, str) and folded(method) in provider.optional_probes else None
