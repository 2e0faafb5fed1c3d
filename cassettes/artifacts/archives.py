"""Cassettes in and out of archives and folders: streamed, bounded, hostile-safe, and reproducible on the way out.

An import unpacks into a fresh staging folder, verifies everything, then becomes visible by one rename. Any failure
leaves nothing behind (spec: cassette-v7 §13.7).
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from cassettes.artifacts.files import IGNORED_NAME, chunks_of, make_folder, walk_files, write_new
from cassettes.artifacts.members import MAX_MEMBERS, MAX_UNPACKED_BYTES, Intake, refused
from cassettes.artifacts.store import ArtifactStore, Imported
from cassettes.artifacts.streams import Bounded, Gzip, Plain, Reader, Zstandard
from cassettes.artifacts.tarread import BLOCK, looks_like_tar, read_tar
from cassettes.artifacts.zipread import read_zip
from cassettes.core.errors import CassetteRejected, InputRejected, Place

FORMATS = (".zip", ".tar", ".tar.gz", ".tar.zst")
MANIFEST = "cassette.json"
_ZIP, _GZIP, _ZSTD = (b"PK\x03\x04", b"PK\x05\x06"), b"\x1f\x8b", b"\x28\xb5\x2f\xfd"  # how they begin
_HEADER_ALLOWANCE = MAX_MEMBERS * 4 * BLOCK + (1 << 20)  # tar headers and padding above the members' own bytes
_ZSTD_LEVEL = 9
_EPOCH_DOS = (1980, 1, 1, 0, 0, 0)


class _Member(Protocol):
    name: str
    size: int
    is_folder: bool

    def chunks(self) -> Iterator[bytes]: ...


def is_archive(source: Path) -> bool:
    """Whether the content of a file is an archive's. `source_unreadable` when it cannot be read."""
    try:
        with source.open("rb") as stream:
            head = stream.read(BLOCK)
    except OSError as error:
        raise InputRejected(
            f"The file cannot be read: {error.strerror}.", code="source_unreadable", place=Place(file=source.name)
        ) from error
    return head.startswith((*_ZIP, _GZIP, _ZSTD)) or looks_like_tar(head)


# ------------------------------------------------------------------------------------------------- import
def import_archive(source: Path | BinaryIO, store: ArtifactStore) -> Imported:
    """Import a .zip, .tar, .tar.gz or .tar.zst, recognised by its content.

    Raises `InputRejected` (`archive_…`) when the archive cannot be used, `CassetteRejected` when what it holds is
    not a valid Cassette, `Conflict` when another Cassette has the same id.
    """
    if isinstance(source, Path):
        try:
            opened = source.open("rb")
        except OSError:
            raise refused("archive_missing", "The file cannot be read.", str(source.name)) from None
        with opened:
            return import_archive(opened, store)
    with store.staging() as staging:
        tree = make_folder(staging / "tree")
        with _seekable(source, staging) as seekable:
            _unpack(_members(seekable), tree)
        return store.adopt(_cassette_root(tree))


def import_folder(source: Path, store: ArtifactStore) -> Imported:
    """Import a copy of an unpacked Cassette; the source is never modified. Raises as `import_archive`."""
    if not source.is_absolute() or not source.is_dir():
        raise InputRejected(
            "The source of an import must be an absolute path of a folder.",
            code="folder_invalid",
            hint="Give the full path of the folder that holds cassette.json.",
        )
    with store.staging() as staging:
        tree = make_folder(staging / "tree")
        _unpack(_folder_members(source), tree)
        return store.adopt(tree)


@contextmanager
def _seekable(source: BinaryIO, staging: Path) -> Iterator[BinaryIO]:
    """The archive itself, or a bounded private copy of a stream that cannot seek."""
    try:
        seekable = source.seekable()
    except AttributeError:
        seekable = False
    if seekable:
        source.seek(0)
        yield source
        return
    path = staging / "archive"
    write_new(path, _bounded_chunks(source))
    with path.open("rb") as copy:
        yield copy


def _bounded_chunks(source: BinaryIO) -> Iterator[bytes]:
    reader = Bounded(Plain(source), MAX_UNPACKED_BYTES + _HEADER_ALLOWANCE)
    while data := reader.read(1 << 20):
        yield data


def _members(source: BinaryIO) -> Iterator[_Member]:
    head = source.read(BLOCK)
    source.seek(0)
    if not head:
        raise refused("archive_empty", "The file is empty.")
    if head.startswith(_ZIP):
        return iter(read_zip(source))
    reader: Reader
    if head.startswith(_GZIP):
        reader = Gzip(source)
    elif head.startswith(_ZSTD):
        reader = Zstandard(source)
    elif looks_like_tar(head):
        reader = Plain(source)
    else:
        raise refused(
            "archive_unsupported",
            "The file is not an archive of a supported kind.",
            hint="Upload a .zip, .tar, .tar.gz or .tar.zst that was exported as a Cassette.",
        )
    return iter(read_tar(Bounded(reader, MAX_UNPACKED_BYTES + _HEADER_ALLOWANCE)))


def _unpack(members: Iterator[_Member], tree: Path) -> None:
    intake = Intake()
    for member in members:
        if member.is_folder:
            path = intake.folder(member.name)
            make_folder(tree / path)
            continue
        path = intake.file(member.name)
        if member.size > intake.max_bytes - intake.bytes_taken:
            raise refused(
                "archive_too_large", f"The archive unpacks to more than {intake.max_bytes} bytes.", member.name
            )
        target = tree / path
        if target.name == IGNORED_NAME:
            for chunk in member.chunks():
                intake.take(len(chunk), member.name)
            continue
        make_folder(target.parent)
        write_new(target, _counted(member, intake))


def _counted(member: _Member, intake: Intake) -> Iterator[bytes]:
    for chunk in member.chunks():
        intake.take(len(chunk), member.name)
        yield chunk


def _cassette_root(tree: Path) -> Path:
    """The folder that holds `cassette.json`: the archive's top, or its one common folder."""
    if (tree / MANIFEST).is_file():
        return tree
    entries = sorted(tree.iterdir())
    if len(entries) == 1 and entries[0].is_dir() and (entries[0] / MANIFEST).is_file():
        return entries[0]
    raise CassetteRejected(
        "The archive holds no Cassette: there is no cassette.json at its top or in its one folder.",
        code="archive_no_cassette",
        hint="Pack the folder that contains cassette.json, and nothing beside it.",
    )


@dataclass(slots=True)
class _FolderMember:
    name: str
    size: int
    is_folder: bool
    path: Path

    def chunks(self) -> Iterator[bytes]:
        return chunks_of(self.path)


def _folder_members(source: Path) -> Iterator[_Member]:
    pending = [source]
    while pending:
        folder = pending.pop()
        for entry in sorted(os.scandir(folder), key=lambda item: item.name):
            path = Path(entry.path)
            name = path.relative_to(source).as_posix()
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                pending.append(path)
                yield _FolderMember(name, 0, True, path)
            elif stat.S_ISREG(status.st_mode):
                yield _FolderMember(name, status.st_size, False, path)
            else:
                code = "archive_link" if stat.S_ISLNK(status.st_mode) else "archive_special_entry"
                raise refused(code, "The folder has an entry that is neither file nor folder.", name)


# ------------------------------------------------------------------------------------------------- export
def export_archive(store: ArtifactStore, cassette_id: str, archive_format: str, out: BinaryIO) -> None:
    """Write a verified Cassette as an archive with one top folder, named after its id.

    The same Cassette gives the same bytes: names sorted, times, owners and modes fixed. `archive_format` is one of
    `FORMATS`. Raises `InputRejected` for another format, `CassetteRejected` for an unknown or damaged Cassette.
    """
    if archive_format not in FORMATS:
        raise InputRejected(
            "This archive format is not supported.",
            code="archive_format",
            expected=", ".join(FORMATS),
            found=archive_format,
        )
    folder = store.resolve(cassette_id)
    files = [(f"{folder.manifest.id}/{name}", path, size) for name, path, size in walk_files(folder.path)]
    if archive_format == ".zip":
        _write_zip(files, out)
    elif archive_format == ".tar":
        _write_tar(files, out)
    elif archive_format == ".tar.gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
            _write_tar(files, cast(BinaryIO, packed))
    else:
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True)
        with compressor.stream_writer(out, closefd=False) as packed:
            _write_tar(files, cast(BinaryIO, packed))


def _write_tar(files: list[tuple[str, Path, int]], out: BinaryIO) -> None:
    with tarfile.open(mode="w|", fileobj=cast(io.BytesIO, out), format=tarfile.USTAR_FORMAT) as archive:
        for name, path, size in files:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = size, 0o600, 0
            with path.open("rb") as content:
                archive.addfile(info, content)


def _write_zip(files: list[tuple[str, Path, int]], out: BinaryIO) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, path, _ in files:
            info = zipfile.ZipInfo(name, _EPOCH_DOS)
            info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o600) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w") as member:
                for chunk in chunks_of(path):
                    member.write(chunk)
