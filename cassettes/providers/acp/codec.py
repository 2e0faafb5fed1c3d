"""JSON-RPC 2.0 lines of the Agent Client Protocol."""

from __future__ import annotations

from typing import Any

from cassettes.providers.codex.codec import JsonRpcCodec
from cassettes.providers.ports import Line

JsonObject = dict[str, Any]


class AcpCodec:
    """The lines of any JSON-RPC, with the version member that this protocol wants."""

    def __init__(self) -> None:
        self._lines = JsonRpcCodec()

    def encode(self, message: JsonObject) -> bytes:
        return self._lines.encode({"jsonrpc": "2.0", **message})

    def decode_line(self, line: bytes) -> Line:
        return self._lines.decode_line(line)
