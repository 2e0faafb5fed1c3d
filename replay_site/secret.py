"""The secret key that signs sessions and tickets: made once, kept in a file that only its owner may read."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def secret_key(path: Path) -> str:
    """The key in `path`. It is generated on first use; of two processes that start at once, one wins."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().strip()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(64))
    with contextlib.suppress(FileExistsError):
        os.link(draft, path)  # atomic, and it never replaces a key that is in use
    draft.unlink()
    return path.read_text().strip()
