"""A real server in a process of its own, as `make run` starts it, with a home of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Server:
    """Migrated, with collected static files and the demo. `open_house` lets everybody in as an admin."""

    def __init__(self, home: Path, *, open_house: bool = True) -> None:
        self.home = home
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **os.environ,
            "REPRISE_HOME": str(home),
            "REPRISE_STATIC": str(home / "static"),
            "REPRISE_OPEN": "1" if open_house else "0",
            "DJANGO_SETTINGS_MODULE": "replay_site.settings",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Make the database and the static files, and import the demo."""
        for command in (["migrate", "-v", "0"], ["collectstatic", "-v", "0", "--noinput"], ["create_demo"]):
            self.manage(*command)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a management command; its output must be looked at where it may fail."""
        line = [sys.executable, "manage.py", *arguments]
        return subprocess.run(line, cwd=ROOT, env=self._environment, text=True, capture_output=True, check=False)

    def start(self) -> None:
        """Serve, and wait until it answers."""
        line = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port), "--verbosity", "0"]
        self._process = subprocess.Popen([*line, "replay_site.asgi:application"], cwd=ROOT, env=self._environment)
        assert wait_until(self._answers), "the server does not answer"

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/sign-in/", timeout=2):
                return True
        except OSError:
            return False

    @property
    def pid(self) -> int:
        """Process id of the server."""
        assert self._process is not None
        return self._process.pid

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it with a signal."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def fork_servers(self) -> list[int]:
        """Process ids of its fork servers."""
        return children_of(self.pid)

    def workers(self) -> list[int]:
        """Process ids of its workers."""
        return [worker for parent in self.fork_servers() for worker in children_of(parent)]

    def worker_folders(self) -> list[Path]:
        """What workers have on disk now."""
        folder = self.home / "workers"
        return sorted(folder.iterdir()) if folder.is_dir() else []


def children_of(pid: int) -> list[int]:
    """Process ids of the living children of a process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(status.parent.name))
    return sorted(found)


def alive(pid: int) -> bool:
    """Whether a process runs (one that is dead and not yet collected does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait until something holds; the limit only ends a test that would never end."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
