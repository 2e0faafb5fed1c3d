"""What a member of a foreign archive or folder may be called, and how much of it may be unpacked.

Archives are hostile until proven otherwise: every rule here is checked before anything is written.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from cassettes.core.errors import InputRejected, Place, shown

MAX_UNPACKED_BYTES = 402_653_184 + 1_048_576  # cassette-v7 §13.7: the inventory and its manifest
MAX_MEMBERS = 20_000
MAX_SEGMENT_BYTES = 255
MAX_PATH_BYTES = 1_024
MAX_DEPTH = 8

_DRIVE = re.compile(r"[A-Za-z]:")


def refused(code: str, message: str, name: str = "", hint: str = "") -> InputRejected:
    """An archive rejection; the member's name is shown only as a place."""
    return InputRejected(
        message,
        code=code,
        place=Place(file=shown(name)) if name else None,
        hint=hint or "Export the Cassette again and upload that file unchanged.",
    )


def clean_name(name: str) -> str:
    """The member name as a safe relative path without a leading `./` and trailing `/`; "" is the root itself.

    Raises `InputRejected` for absolute, parent, backslash, drive, control-character and over-long names.
    """
    if len(name.encode("utf-8", "surrogateescape")) > MAX_PATH_BYTES:
        raise refused("archive_name_too_long", "A member has a name that is too long.", name)
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in name):
        raise refused("archive_unsafe_path", "A member has a name with control characters.", repr(name))
    if "\\" in name or name.startswith("/") or _DRIVE.match(name):
        raise refused("archive_unsafe_path", "A member has an absolute or backslash path.", name)
    text = name.rstrip("/")
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    if text in ("", "."):
        return ""
    segments = text.split("/")
    if any(segment in ("", ".", "..") for segment in segments):
        raise refused("archive_unsafe_path", "A member has a path that is not a plain relative path.", name)
    if len(segments) > MAX_DEPTH:
        raise refused("archive_name_too_long", "A member lies in too many folders.", name)
    if any(len(segment.encode()) > MAX_SEGMENT_BYTES for segment in segments):
        raise refused("archive_name_too_long", "A member has a name that is too long.", name)
    return text


def _collision_key(path: str) -> str:
    """Paths that a case-folding or normalising file system takes for the same file have the same key."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


@dataclass(slots=True)
class Intake:
    """The names and bytes taken so far; every member passes here before it is written."""

    max_bytes: int = MAX_UNPACKED_BYTES
    max_members: int = MAX_MEMBERS
    bytes_taken: int = 0
    members: int = 0
    _files: set[str] = field(default_factory=set)
    _folders: dict[str, str] = field(default_factory=dict)  # key -> exact spelling

    def _count(self) -> None:
        self.members += 1
        if self.members > self.max_members:
            raise refused("archive_too_many_members", f"The archive has more than {self.max_members} members.")

    def _enter_folders(self, path: str, name: str) -> None:
        segments = path.split("/")
        for depth in range(1, len(segments) + 1):
            folder = "/".join(segments[:depth])
            key = _collision_key(folder)
            if key in self._files:
                raise refused("archive_duplicate_member", "A member is both a file and a folder.", name)
            if self._folders.setdefault(key, folder) != folder:
                raise refused("archive_duplicate_member", "Two folders differ only in letter case.", name)

    def folder(self, name: str) -> str:
        """Admit a folder; "" for the root. Naming a folder again is harmless."""
        self._count()
        path = clean_name(name)
        if path:
            self._enter_folders(path, name)
        return path

    def file(self, name: str) -> str:
        """Admit a regular file. Raises on a duplicate, also one that differs only in letter case."""
        self._count()
        path = clean_name(name)
        if not path or name.endswith("/"):
            raise refused("archive_unsafe_path", "A file member has no file name.", name)
        key = _collision_key(path)
        if key in self._files or key in self._folders:
            raise refused("archive_duplicate_member", "Two members have the same name.", name)
        parent = path.rpartition("/")[0]
        if parent:
            self._enter_folders(parent, name)
        self._files.add(key)
        return path

    def take(self, count: int, name: str = "") -> None:
        """Count unpacked bytes. Raises above the budget, before the bytes are written."""
        self.bytes_taken += count
        if self.bytes_taken > self.max_bytes:
            raise refused("archive_too_large", f"The archive unpacks to more than {self.max_bytes} bytes.", name)
