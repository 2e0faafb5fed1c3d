"""Starts workers on this machine through the fork server, and ends them.

One fork server for each product process, started when the first worker is wanted. It inherits nothing but a socket:
no environment, no open files, no secret.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from cassettes.core.errors import RepriseError

JsonObject = dict[str, Any]

_PROJECT = Path(__file__).resolve().parents[2]
_REPLY_SECONDS = 20.0


class WorkerStartFailed(RepriseError):
    """No worker could be started."""

    code = "worker_start_failed"


class Launcher:
    """Owns the fork server. Safe to call from several threads; a call takes a few milliseconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def spawn(self, folder: Path) -> tuple[socket.socket, int]:
        """Start a worker that may use `folder` (made by it, removed at its end): our end of its socket, its pid."""
        ours, theirs = socket.socketpair()
        try:
            reply = self._ask({"folder": str(folder)}, [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours, int(reply["pid"])

    def kill(self, pid: int) -> bool:
        """End a worker that does not end by itself. False when it is gone already."""
        try:
            return bool(self._ask({"kill": pid}, []).get("killed"))
        except WorkerStartFailed:
            return False

    def warm_up(self) -> None:
        """Start the fork server before it is needed."""
        with self._lock:
            self._connected()

    def close(self) -> None:
        """Let the fork server go; it ends its workers."""
        with self._lock:
            self._drop()

    @property
    def fork_server_pid(self) -> int:
        """Process id of the fork server; 0 when none runs."""
        return self._process.pid if self._process is not None else 0

    def _ask(self, request: JsonObject, descriptors: list[int]) -> JsonObject:
        data = json.dumps(request).encode()
        with self._lock:
            for attempt in (1, 2):
                control = self._connected()
                try:
                    socket.send_fds(control, [data], descriptors)
                    reply = control.recv(4096)
                    if reply:
                        return dict(json.loads(reply))
                except OSError as error:
                    if attempt == 2:
                        raise WorkerStartFailed(f"The fork server does not answer: {error}.") from error
                self._drop()
                if "kill" in request:
                    break
        raise WorkerStartFailed("The fork server ended.", hint="Look into the server's log.")

    def _connected(self) -> socket.socket:
        running = self._process is not None and self._process.poll() is None
        if self._control is not None and running and self._owner == os.getpid():
            return self._control
        self._drop()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_REPLY_SECONDS)
        environment = {name: os.environ[name] for name in ("PATH", "LANG", "TZ", "TMPDIR") if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-m", "cassettes.worker.forkserver", str(theirs.fileno())],
            cwd=_PROJECT,
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._control = ours
        self._owner = os.getpid()
        return ours

    def _drop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None and self._owner == os.getpid():
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._control = self._process = None


LAUNCHER = Launcher()
