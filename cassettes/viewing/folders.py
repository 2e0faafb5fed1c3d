"""The temporary folders of workers, below `REPRISE_HOME`, and the sweeping of those that a crash left."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from django.conf import settings


def root() -> Path:
    """The folder that holds the folders of workers."""
    return Path(settings.REPRISE_HOME) / "workers"


def fresh() -> Path:
    """A path for one worker. The name carries our process id, so that a sweep knows whose it is."""
    base = root()
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    return base / f"{os.getpid()}-{secrets.token_hex(8)}"


def sweep() -> int:
    """Remove folders whose server is gone; gives how many. Called when a server starts."""
    removed = 0
    for folder in root().glob("*-*"):
        owner = folder.name.partition("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
