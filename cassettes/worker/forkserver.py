"""The fork server: holds everything a worker needs already imported, and forks one worker for each request.

A request comes over a datagram-like Unix socket: a small JSON object and one file descriptor, the worker's end of a
socket pair. Started as `python -m cassettes.worker.forkserver FD`. When the requester is gone, workers get a short
time to clean up by themselves; then they are killed, their folders removed, and the fork server ends.
"""

from __future__ import annotations

import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from cassettes.worker import jobs

JsonObject = dict[str, Any]

_REQUEST_BYTES = 4096
_REAP_SECONDS = 0.25
_GRACE_SECONDS = 5.0


class ForkServer:
    """Forks workers and buries them: the folder of a worker that died is removed."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._workers: dict[int, Path] = {}  # folder by process id

    def serve(self) -> None:
        """Answer requests until the other side is gone."""
        gc.collect()
        gc.freeze()  # what is shared with the workers stays shared
        while True:
            ready, _, _ = select.select([self._control], [], [], _REAP_SECONDS if self._workers else None)
            self._reap()
            if ready and not self._answer():
                break
        self._bury_all()

    def _answer(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, _REQUEST_BYTES, 1)
        except OSError:
            return False
        if not data:
            return False
        request = json.loads(data)
        reply: JsonObject = {}
        if "kill" in request:
            reply = {"killed": self._kill(int(request["kill"]))}
        elif descriptors:
            reply = {"pid": self._fork(descriptors[0], Path(request["folder"]))}
        self._control.send(json.dumps(reply).encode())
        return True

    def _fork(self, descriptor: int, folder: Path) -> int:
        pid = os.fork()
        if pid == 0:
            self._control.close()
            status = 1
            try:
                status = jobs.run(socket.socket(fileno=descriptor), folder)
            finally:
                os._exit(status)
        os.close(descriptor)
        self._workers[pid] = folder
        return pid

    def _kill(self, pid: int) -> bool:
        if pid not in self._workers:
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def _reap(self) -> None:
        while self._workers:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            folder = self._workers.pop(pid, None)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def _bury_all(self) -> None:
        deadline = time.monotonic() + _GRACE_SECONDS
        while self._workers and time.monotonic() < deadline:
            time.sleep(0.02)
            self._reap()
        for pid in list(self._workers):
            os.kill(pid, signal.SIGKILL)
        while self._workers:
            time.sleep(0.01)
            self._reap()


def main() -> None:
    """Serve the control socket whose descriptor is the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)  # a Ctrl-C or hang-up of the server's terminal does not reach the workers; its end does
    ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
