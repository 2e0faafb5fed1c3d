"""Liveness of unfinished folders: whoever works on one holds an advisory lock, so a sweep only takes the dead."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cassettes.artifacts.files import FILE_MODE, make_folder


class FolderLock:
    """An exclusive lock beside a folder; the operating system frees it when its process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> FolderLock | None:
        """Take the lock file at `path`, or None while another holder lives."""
        make_folder(path.parent)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            try:
                current = path.stat().st_ino == os.fstat(descriptor).st_ino
            except FileNotFoundError:
                current = False
            if current:
                return cls(path, descriptor)
            os.close(descriptor)  # a sweep removed the file between opening and locking it

    def release(self) -> None:
        """Free the lock and remove its file; a second call does nothing."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None
