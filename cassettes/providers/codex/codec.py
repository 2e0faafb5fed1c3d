"""JSON-RPC lines (provider-adapters §4)."""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.providers.ports import Line

JsonObject = dict[str, Any]
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class JsonRpcCodec:
    """One JSON object a line. Anything else on stdout is a log line and no message."""

    def encode(self, message: JsonObject) -> bytes:
        return _encode(message) + b"\n"

    def decode_line(self, line: bytes) -> Line:
        try:
            value = _decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return Line()
        return Line(message=value) if isinstance(value, dict) else Line()
