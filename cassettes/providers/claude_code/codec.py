"""NDJSON envelopes of the Claude Code sidecar (provider-adapters §5.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.providers.ports import Line

JsonObject = dict[str, Any]
VERSIONS = (7, 8)
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class SidecarCodec:
    """One envelope a line; only blank lines are no message. The version is that of the first message, for all."""

    def __init__(self) -> None:
        self._version = 0

    def encode(self, message: JsonObject) -> bytes:
        return _encode(message) + b"\n"

    def decode_line(self, line: bytes) -> Line:
        if not line.strip():
            return Line()
        try:
            value = _decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return Line(fatal="the line is no JSON")
        if not isinstance(value, dict) or not isinstance(value.get("type"), str) or not value["type"]:
            return Line(fatal="the line is no envelope with a type")
        version = value.get("version")
        if version not in VERSIONS or isinstance(version, bool):
            return Line(fatal=f"envelope version {version!r}; 7 and 8 are known")
        if self._version and version != self._version:
            return Line(fatal=f"envelope version {version} after {self._version}")
        self._version = int(version)
        return Line(message=value)
