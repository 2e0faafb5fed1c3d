"""A strict zip reader: regular, unencrypted, stored or deflated members whose sizes and checksums hold."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from cassettes.artifacts.members import MAX_MEMBERS, refused

_CHUNK = 1 << 20
_END = b"PK\x05\x06"
_END64 = b"PK\x06\x06"
_LOCATOR64 = b"PK\x06\x07"
_LOCAL_HEADER = 30  # bytes before the name of a member
_MAX_DIRECTORY_BYTES = 512 * MAX_MEMBERS


@dataclass(slots=True)
class ZipMember:
    """One file or folder of the archive."""

    name: str
    size: int
    is_folder: bool
    _archive: zipfile.ZipFile
    _info: zipfile.ZipInfo

    def chunks(self) -> Iterator[bytes]:
        read = 0
        try:
            with self._archive.open(self._info) as content:
                while data := content.read(_CHUNK):
                    read += len(data)
                    yield data
        except EOFError:
            raise refused("archive_truncated", "The archive ends in the middle of a member.", self.name) from None
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, struct.error, ValueError):
            raise refused("archive_corrupt", "A member is damaged or lies about its size.", self.name) from None
        if read != self.size:
            raise refused("archive_size_mismatch", "A member has another size than it claims.", self.name)


def _check_directory_size(source: BinaryIO) -> None:
    """Refuse a directory that would fill the memory before `zipfile` reads it."""
    source.seek(0, 2)
    length = source.tell()
    start = max(0, length - 65_557)
    source.seek(start)
    tail = source.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:
        raise refused("archive_truncated", "The zip file has no directory: it is cut off or damaged.")
    count, size = struct.unpack("<HI", tail[at + 10 : at + 16])
    if tail[at - 20 : at - 16] == _LOCATOR64:
        offset = struct.unpack("<Q", tail[at - 12 : at - 4])[0]
        if offset + 56 > length:
            raise refused("archive_corrupt", "The zip directory is damaged.")
        source.seek(offset)
        record = source.read(56)
        if record[:4] != _END64:
            raise refused("archive_corrupt", "The zip directory is damaged.")
        count, size = struct.unpack("<QQ", record[32:48])
    if count > MAX_MEMBERS or size > _MAX_DIRECTORY_BYTES:
        raise refused("archive_too_many_members", f"The archive has more than {MAX_MEMBERS} members.")
    source.seek(0)


def read_zip(source: BinaryIO) -> Iterator[ZipMember]:
    """The members in directory order. Raises `InputRejected`; `source` must be seekable."""
    _check_directory_size(source)
    try:
        archive = zipfile.ZipFile(source)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, UnicodeDecodeError, OSError):
        raise refused("archive_corrupt", "The zip directory is damaged.") from None
    with archive:
        infos = archive.infolist()
        if not infos:
            raise refused("archive_empty", "The archive has no members.")
        _check_overlap(infos, archive.start_dir)
        for info in infos:
            yield _member(archive, info)


def _check_overlap(infos: list[zipfile.ZipInfo], directory_at: int) -> None:
    """Refuse members that share bytes: one small piece of data would unpack many times over."""
    end = directory_at
    for info in sorted(infos, key=lambda one: one.header_offset, reverse=True):
        if info.header_offset + _LOCAL_HEADER + info.compress_size > end:
            raise refused("archive_overlap", "Two members of the archive share the same bytes.", info.orig_filename)
        end = info.header_offset


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> ZipMember:
    name = info.orig_filename
    if info.flag_bits & 0x41:
        raise refused(
            "archive_encrypted", "The archive has encrypted members.", name, "Upload an archive without a password."
        )
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise refused("archive_unsupported", "The zip file uses a compression that is not supported.", name)
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise refused("archive_link", "The archive has a link.", name)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise refused("archive_special_entry", "The archive has an entry that is neither file nor folder.", name)
    is_folder = name.endswith("/")
    if is_folder != (kind == stat.S_IFDIR) and kind != 0:
        raise refused("archive_special_entry", "A member is a file by name and a folder by type.", name)
    if is_folder and info.file_size:
        raise refused("archive_size_mismatch", "A folder claims to have content.", name)
    return ZipMember(name, info.file_size, is_folder, archive, info)
