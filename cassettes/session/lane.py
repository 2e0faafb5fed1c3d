"""The input lane of one connection: chunks in, Provider Input Units out (provider-tape §11.1)."""

from __future__ import annotations

from collections import deque

from cassettes.core.errors import RepriseError
from cassettes.providers.ports import Codec
from cassettes.session.ports import Chunk, Unit

_MAX_BAD_LINES = 200  # consecutive lines that are no message, before the stream counts as garbage
_MAX_LINE = 64 * 1024 * 1024


class ProtocolBroken(RepriseError):
    """A provider wrote something that its protocol does not allow."""

    code = "provider_protocol_invalid"


class InputLane:
    """Joins stdout chunks into lines and numbers the messages within the chunk that completes them."""

    def __init__(self, connection_id: str, codec: Codec) -> None:
        self.connection_id = connection_id
        self._codec = codec
        self._units: deque[Unit] = deque()
        self._open_line: list[bytes] = []
        self._open_bytes = 0
        self._bad_lines = 0

    def __len__(self) -> int:
        return len(self._units)

    def peek(self) -> Unit | None:
        """The next unit, not taken."""
        return self._units[0] if self._units else None

    def pop(self) -> Unit:
        """Take the next unit."""
        return self._units.popleft()

    def push(self, chunk: Chunk) -> None:
        """Decode what `chunk` completes. `provider_protocol_invalid` when the stream cannot be understood."""
        if chunk.kind == "stdout":
            self._stdout(chunk)
        elif chunk.kind == "exit":
            unit = Unit(
                connection_id=self.connection_id,
                chunk_seq=chunk.chunk_seq,
                unit_index=1,
                kind="process-exit",
                exit_code=chunk.exit_code,
                text=chunk.message,
            )
            self._units.append(unit)

    def _stdout(self, chunk: Chunk) -> None:
        *complete, rest = chunk.data.split(b"\n")
        index = 0
        for line in complete:
            if self._open_line:
                self._open_line.append(line)
                line = b"".join(self._open_line)
                self._open_line.clear()
                self._open_bytes = 0
            message = self._decode(line, chunk.chunk_seq)
            if message is None:
                continue
            index += 1
            unit = Unit(
                connection_id=self.connection_id,
                chunk_seq=chunk.chunk_seq,
                unit_index=index,
                kind="protocol-message",
                message=message,
            )
            self._units.append(unit)
        if rest:
            self._open_line.append(rest)
            self._open_bytes += len(rest)
            if self._open_bytes > _MAX_LINE:
                raise ProtocolBroken(f"{self.connection_id} wrote a line of more than {_MAX_LINE} bytes")

    def _decode(self, line: bytes, chunk_seq: int) -> dict[str, object] | None:
        decoded = self._codec.decode_line(line)
        if decoded.fatal:
            raise ProtocolBroken(f"{self.connection_id}, chunk {chunk_seq}: {decoded.fatal}")
        if decoded.message is None:
            if line.strip():
                self._bad_lines += 1
                if self._bad_lines > _MAX_BAD_LINES:
                    raise ProtocolBroken(f"{self.connection_id} wrote {_MAX_BAD_LINES} lines that are no message")
            return None
        self._bad_lines = 0
        return decoded.message
