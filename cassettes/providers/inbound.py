"""Recorded provider output as this run has to see it (provider-tape §10)."""

from __future__ import annotations

from typing import Any

from cassettes.core.errors import CassetteRejected
from cassettes.core.jsontext import decode_values, encode_values
from cassettes.providers.matching import Matcher
from cassettes.providers.ports import Provider
from cassettes.providers.value_audit import folded
from cassettes.providers.values import id_key

JsonObject = dict[str, Any]


class InboundTransform:
    """Puts live paths, identities and response ids into recorded messages of one connection."""

    def __init__(self, provider: Provider, matcher: Matcher) -> None:
        self._provider = provider
        self._matcher = matcher
        self._skipped: set[str] = set()
        self._identity_names = [name.encode() for name in provider.generated_identity_fields]

    def skip_response(self, recorded_id: str) -> None:
        """The request with this id was never sent: its response is dropped, once."""
        self._skipped.add(recorded_id)

    def transform(self, kind: str, data: bytes) -> bytes:
        """The bytes to deliver. Bytes that are no sequence of JSON values pass unchanged."""
        if kind == "exit" or not data or self._stays(data):
            return data
        try:
            values = decode_values(data)
        except CassetteRejected:
            return data
        live = [self._identities(self._matcher.to_live(value)) for value in values]
        if kind == "stdout":
            live = [self._response(value) for value in live if not self._drop(value)]
        unchanged = len(live) == len(values) and all(new is old for new, old in zip(live, values, strict=True))
        if unchanged and data.endswith(b"\n"):
            return data
        return encode_values(live) if live else b""

    def _stays(self, data: bytes) -> bool:
        """Whether nothing in these whole lines can be ours to change; saves decoding them."""
        if not data.endswith(b"\n") or b"${" in data or b"\\u" in data:
            return False
        if b'"result"' in data or b'"error"' in data or self._provider.response_types:
            return False
        lowered = data.lower()
        return not any(name in lowered for name in self._identity_names)

    def _identities(self, value: Any) -> Any:
        known = self._matcher.identities
        if not known:
            return value
        if isinstance(value, list):
            items = [self._identities(item) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        if not isinstance(value, dict):
            return value
        result = value
        for name, item in value.items():
            if isinstance(item, str):
                new: Any = known.get(item, item) if self._is_generated(name) else item
            else:
                new = self._identities(item)
            if (new is not item and new != item) or (new is not item and not isinstance(item, str)):
                result = dict(result) if result is value else result
                result[name] = new
        return result

    def _is_generated(self, name: str) -> bool:
        return folded(name) in self._provider.generated_identity_fields

    def _is_response(self, value: Any) -> bool:
        if not isinstance(value, dict) or "id" not in value or "method" in value:
            return False
        return "result" in value or "error" in value or value.get("type") in self._provider.response_types

    def _drop(self, value: Any) -> bool:
        if not self._is_response(value):
            return False
        key = id_key(value["id"])
        if key not in self._skipped:
            return False
        self._skipped.discard(key)
        return True

    def _response(self, value: Any) -> Any:
        if not self._is_response(value):
            return value
        live = self._matcher.response_ids.get(id_key(value["id"]))
        return value if live is None or live == value["id"] else {**value, "id": live}
