"""Bounded, truncation-proof reading of compressed streams.

A reader never produces more than it is asked for, stops at a byte budget, and tells a cut-off stream from a
finished one.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO, Protocol

import zstandard

from cassettes.artifacts.members import refused

_GZIP_INPUT = 65_536
_ZSTD_INPUT = 1_024  # one input block may unpack 30 000-fold: a small input bounds what one step produces
_ZSTD_WINDOW = 1 << 27


class Reader(Protocol):
    """A forward-only byte stream."""

    def read(self, count: int) -> bytes:
        """At most `count` bytes; b"" at the proven end of the stream."""
        ...


class Plain:
    """An uncompressed stream."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def read(self, count: int) -> bytes:
        return self._source.read(count)


class Gzip:
    """One or more gzip members; zero padding after the last one is allowed."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(wbits=31)
        self._pending = b""
        self._started = False

    def read(self, count: int) -> bytes:
        while True:
            if self._inflate.eof:
                self._pending = self._inflate.unused_data.lstrip(b"\0")
                self._inflate = zlib.decompressobj(wbits=31)
                self._started = False
            data = self._pending or self._source.read(_GZIP_INPUT)
            if not self._started:
                data = data.lstrip(b"\0")
            self._pending = b""
            if not data:
                chunk = self._source.read(_GZIP_INPUT)
                if not chunk:
                    if self._started:
                        raise refused("archive_truncated", "The gzip stream ends too early.")
                    return b""
                self._pending = chunk
                continue
            self._started = True
            try:
                result = self._inflate.decompress(data, count)
            except zlib.error:
                raise refused("archive_corrupt", "The gzip stream is damaged.") from None
            if not self._inflate.eof:
                self._pending = self._inflate.unconsumed_tail
            if result:
                return result


class Zstandard:
    """One or more zstd frames."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._started = False
        self._input = b""
        self._output = b""

    def read(self, count: int) -> bytes:
        while not self._output:
            data = self._input or self._source.read(_ZSTD_INPUT)
            self._input = b""
            if not data:
                if self._started:
                    raise refused("archive_truncated", "The zstd stream ends too early.")
                return b""
            self._started = True
            try:
                self._output = self._frame.decompress(data)
            except zstandard.ZstdError:
                raise refused("archive_corrupt", "The zstd stream is damaged.") from None
            if self._frame.eof:
                self._input = self._frame.unused_data
                self._frame = self._decompressor.decompressobj()
                self._started = False
        result, self._output = self._output[:count], self._output[count:]
        return result


class Bounded:
    """A reader with a budget for everything that comes out of it, headers and padding included."""

    def __init__(self, inner: Reader, budget: int) -> None:
        self._inner = inner
        self._left = budget

    def read(self, count: int) -> bytes:
        data = self._inner.read(count)
        self._left -= len(data)
        if self._left < 0:
            raise refused("archive_too_large", "The archive unpacks to more than a Cassette may hold.")
        return data
