"""Small file-system operations of the store: private modes, whole-file writes, one-rename moves."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from cassettes.core.errors import CassetteRejected, Place

FOLDER_MODE = 0o700
FILE_MODE = 0o600
CHUNK = 1 << 20
IGNORED_NAME = ".DS_Store"  # cassette-v7 §2.2: ignored anywhere


def make_folder(path: Path) -> Path:
    """Create a private folder and its missing parents."""
    if not path.is_dir():
        make_folder(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=FOLDER_MODE)
    return path


def write_new(path: Path, chunks: Iterable[bytes]) -> int:
    """Create a private file that must not exist yet; returns its size. The bytes reach the disk."""
    written = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            written += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return written


def write_whole(path: Path, data: bytes) -> None:
    """Replace a whole file: a private `<path>.tmp`, then one rename."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    write_new(temporary, (data,))
    temporary.replace(path)


def sync_folder(path: Path) -> None:
    """Make renames inside a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_folder(source: Path, target: Path) -> bool:
    """Rename a folder to a place that must be free. Returns False when something is there already."""
    make_folder(target.parent)
    if os.path.lexists(target):
        return False
    try:
        source.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            return False
        raise
    sync_folder(target.parent)
    return True


def remove_tree(path: Path) -> None:
    """Remove a folder or file; absent is fine."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    elif path.exists():
        shutil.rmtree(path, ignore_errors=True)


def read_bytes(path: Path, limit: int, *, file: str) -> bytes:
    """Read a regular file of at most `limit` bytes. Raises `CassetteRejected` (`file_missing`, `file_too_large`)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        raise CassetteRejected(
            "A file of the Cassette is missing or is not a regular file.",
            code="file_missing",
            place=Place(file=file),
            hint="The Cassette is incomplete; export it again.",
        ) from None
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise CassetteRejected(
                "A file of the Cassette is not a regular file.", code="file_irregular", place=Place(file=file)
            )
        data = opened.read(limit + 1)
    if len(data) > limit:
        raise CassetteRejected(
            "A file of the Cassette is too large.",
            code="file_too_large",
            place=Place(file=file),
            expected=f"at most {limit} bytes",
        )
    return data


def walk_files(root: Path, ignored_folders: Collection[str] = ()) -> Iterator[tuple[str, Path, int]]:
    """(relative path, path, size) of every regular file, sorted; `.DS_Store` and ignored top folders are left out.

    Raises `CassetteRejected` (`file_irregular`) for a link, device or socket.
    """
    pending = [root]
    found = []
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    if folder != root or entry.name not in ignored_folders:
                        pending.append(path)
                    continue
                relative = path.relative_to(root).as_posix()
                if not entry.is_file(follow_symlinks=False):
                    raise CassetteRejected(
                        "The Cassette folder has an entry that is neither file nor folder.",
                        code="file_irregular",
                        place=Place(file=relative),
                        hint="Links, devices and sockets cannot be part of a Cassette.",
                    )
                if entry.name != IGNORED_NAME:
                    found.append((relative, path, entry.stat(follow_symlinks=False).st_size))
    yield from sorted(found)


def chunks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a regular file, piece by piece; a link is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(CHUNK):
            yield data


def sha256_of(path: Path) -> str:
    """Lower-case hex digest of a file."""
    digest = hashlib.sha256()
    for chunk in chunks_of(path):
        digest.update(chunk)
    return digest.hexdigest()
