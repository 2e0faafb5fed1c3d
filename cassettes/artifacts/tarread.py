"""A strict, streaming tar reader: regular files and folders only (POSIX ustar, pax and GNU long names).

`tarfile` reads extension headers of any size into memory and follows rules that an upload must not use (sparse
files, links, devices), so the few hundred bytes of the format are read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cassettes.artifacts.members import refused
from cassettes.artifacts.streams import Reader

BLOCK = 512
_MAX_EXTENSION = 65_536  # bytes of one pax or GNU long-name header
_CHUNK = 1 << 20


@dataclass(slots=True)
class TarMember:
    """One file or folder; `chunks()` must be read to its end before the next member is asked for."""

    name: str
    size: int
    is_folder: bool
    _reader: _Blocks

    def chunks(self) -> Iterator[bytes]:
        left = self.size
        while left:
            data = self._reader.some(min(left, _CHUNK))
            left -= len(data)
            yield data
        self._reader.skip_padding(self.size)


class _Blocks:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def some(self, count: int) -> bytes:
        data = self._reader.read(count)
        if not data:
            raise refused("archive_truncated", "The archive ends in the middle of a member.")
        return data

    def exactly(self, count: int) -> bytes:
        parts = []
        while count:
            data = self.some(count)
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def block_or_end(self) -> bytes:
        """The next 512 bytes, or b"" at the very end of the stream."""
        first = self._reader.read(BLOCK)
        return first + self.exactly(BLOCK - len(first)) if first else b""

    def skip_padding(self, size: int) -> None:
        self.exactly(-size % BLOCK)

    def rest_is_zero(self) -> bool:
        while True:
            data = self._reader.read(_CHUNK)
            if not data:
                return True
            if data.strip(b"\0"):
                return False


def looks_like_tar(head: bytes) -> bool:
    """Whether the first 512 bytes are a tar header with a right checksum."""
    if len(head) < BLOCK:
        return False
    try:
        return _number(head[148:156]) == _checksum(head)
    except ValueError:
        return False


def _checksum(block: bytes) -> int:
    return sum(block[:148]) + sum(block[156:BLOCK]) + 8 * ord(" ")


def _number(raw: bytes) -> int:
    if raw[:1] == b"\x80":  # GNU base-256
        return int.from_bytes(raw[1:], "big")
    text = raw.split(b"\0", 1)[0].strip(b" \0")
    return int(text, 8) if text else 0


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _corrupt(message: str, name: str = "") -> Exception:
    return refused("archive_corrupt", message, name)


def _pax_records(data: bytes) -> dict[str, bytes]:
    records: dict[str, bytes] = {}
    while data:
        length_text, _, rest = data.partition(b" ")
        if not length_text.isdigit() or len(length_text) > 6:
            raise _corrupt("A pax header is damaged.")
        length = int(length_text)
        record = rest[: length - len(length_text) - 1]
        if len(record) != length - len(length_text) - 1 or not record.endswith(b"\n"):
            raise _corrupt("A pax header is damaged.")
        key, separator, value = record[:-1].partition(b"=")
        if not separator:
            raise _corrupt("A pax header is damaged.")
        records[key.decode("utf-8", "replace")] = value
        data = data[length:]
    return records


def _check_pax(records: dict[str, bytes], *, shared: bool) -> None:
    if any(key.startswith("GNU.sparse") for key in records):
        raise refused("archive_sparse", "The archive has a sparse file.")
    if shared and ("path" in records or "size" in records):
        raise _corrupt("A pax header renames or resizes all members.")


def read_tar(reader: Reader) -> Iterator[TarMember]:
    """The members in order. Raises `InputRejected` for anything but files and folders, and for damage."""
    blocks = _Blocks(reader)
    pax: dict[str, bytes] = {}
    long_name: str | None = None
    seen = False
    while True:
        block = blocks.block_or_end()
        if not block:
            if seen:
                raise refused("archive_truncated", "The archive ends without its end mark.")
            raise refused("archive_empty", "The archive is empty.")
        if not block.strip(b"\0"):
            if not blocks.rest_is_zero():
                raise refused("archive_trailing_data", "The archive goes on after its end mark.")
            if not seen:
                raise refused("archive_empty", "The archive has no members.")
            return
        try:
            size = _number(block[124:136])
            checksum = _number(block[148:156])
        except ValueError:
            raise _corrupt("A member header is damaged.") from None
        if checksum != _checksum(block):
            raise _corrupt("A member header is damaged.")
        kind = block[156:157]
        if kind in (b"x", b"X", b"g", b"L", b"K"):
            if size > _MAX_EXTENSION:
                raise refused("archive_name_too_long", "A member has an over-long name or header.")
            data = blocks.exactly(size)
            blocks.skip_padding(size)
            if kind == b"L":
                long_name = _text(data)
            elif kind in (b"x", b"X"):
                pax = _pax_records(data)
                _check_pax(pax, shared=False)
            elif kind == b"g":
                _check_pax(_pax_records(data), shared=True)
            continue
        seen = True
        name = _name(block, pax, long_name)
        if "size" in pax:
            if not pax["size"].isdigit() or len(pax["size"]) > 19:
                raise _corrupt("A pax header is damaged.", name)
            size = int(pax["size"])
        pax, long_name = {}, None
        yield _member(kind, name, size, blocks)


def _name(block: bytes, pax: dict[str, bytes], long_name: str | None) -> str:
    if "path" in pax:
        return pax["path"].decode("utf-8", "surrogateescape")
    if long_name is not None:
        return long_name
    name = _text(block[0:100])
    prefix = _text(block[345:500]) if block[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _member(kind: bytes, name: str, size: int, blocks: _Blocks) -> TarMember:
    if kind in (b"1", b"2"):
        raise refused("archive_link", "The archive has a link.", name)
    if kind == b"S":
        raise refused("archive_sparse", "The archive has a sparse file.", name)
    if kind not in (b"0", b"\0", b"7", b"5"):
        raise refused("archive_special_entry", "The archive has an entry that is neither file nor folder.", name)
    is_folder = kind == b"5" or (kind == b"\0" and name.endswith("/"))
    if is_folder and size:
        raise refused("archive_size_mismatch", "A folder claims to have content.", name)
    return TarMember(name, size, is_folder, blocks)
