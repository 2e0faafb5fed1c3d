"""The line protocol between a worker and the process that started it: one JSON object a line, over a socket pair."""

from __future__ import annotations

import select
import socket
from typing import Any

import msgspec

from cassettes.core.errors import RepriseError

JsonObject = dict[str, Any]

MAX_LINE = 64 * 1024 * 1024
_READ = 1 << 16
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class WireBroken(RepriseError):
    """The other side does not keep to the line protocol."""

    code = "worker_wire_broken"


def encode(message: JsonObject) -> bytes:
    """One line."""
    return _encode(message) + b"\n"


class LineBuffer:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[JsonObject]:
        """The messages that are now complete. `WireBroken` when a line is too long or no JSON object."""
        self._held += data
        end = self._held.rfind(b"\n")
        if end < 0:
            if len(self._held) > MAX_LINE:
                raise WireBroken(f"A line is longer than {MAX_LINE} bytes.")
            return []
        lines = bytes(self._held[:end]).split(b"\n")
        del self._held[: end + 1]
        return [_message(line) for line in lines if line]


def _message(line: bytes) -> JsonObject:
    try:
        message = _decode(line)
    except msgspec.DecodeError as error:
        raise WireBroken(f"A line is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise WireBroken("A line is no JSON object.")
    return message


class Wire:
    """A worker's end of the socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = LineBuffer()
        self.closed = False

    def send(self, message: JsonObject) -> None:
        """Write one message; waits until it is taken. Nobody there any more: `closed` becomes true."""
        if self.closed:
            return
        try:
            self._socket.sendall(encode(message))
        except OSError:
            self.closed = True

    def receive(self, timeout: float | None) -> list[JsonObject]:
        """Messages that came within `timeout` seconds (None: wait). Empty and `closed` when the other side is gone."""
        if self.closed:
            return []
        ready, _, _ = select.select([self._socket], [], [], timeout)
        if not ready:
            return []
        try:
            data = self._socket.recv(_READ)
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        return self._buffer.feed(data)
