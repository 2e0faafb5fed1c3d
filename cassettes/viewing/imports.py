"""Jobs that a worker does while somebody waits: import a source, verify a Cassette.

Uploads are hostile, so no product process reads them: a worker without network, secrets or database does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cassettes.core.errors import RepriseError
from cassettes.viewing import folders
from cassettes.viewing.launcher import LAUNCHER
from cassettes.worker.wire import Wire

JsonObject = dict[str, Any]
OnProgress = Callable[[JsonObject], None]

JOB_SECONDS = 1800.0


class JobFailed(RepriseError):
    """The worker refused the job, or died. Carries the worker's own error."""

    code = "job_failed"

    def __init__(self, error: JsonObject) -> None:
        super().__init__(str(error.get("message", "")), code=str(error.get("code") or self.code))
        self.error = error

    def as_dict(self) -> JsonObject:
        return {"place": "", **self.error}


def run_import(
    source: Path, home: Path, *, name: str | None = None, on_progress: OnProgress | None = None
) -> JsonObject:
    """Import a transcript or an archive and replay what came out. `JobFailed` when nothing was published.

    The result: `cassettes`: a list with `cassetteId`, `records`, `entities`, `unrecognised`, `replay` (`equal` or the
    first mismatch), `created` (False when exactly this Cassette was there already) and `secrets` (findings, masked);
    `report` of the import.
    """
    request = {"kind": "import", "source": str(source.resolve()), "home": str(home.resolve()), "name": name}
    return _run(request, on_progress)


def run_verify(path: Path, *, static_only: bool = False, size: bool = False) -> JsonObject:
    """Verify the Cassette in folder or archive `path`: `verdict`, `code`, `place`, `replay`, `error`.

    With `size` also where its bytes are.
    """
    return _run({"kind": "verify", "path": str(path.resolve()), "static": static_only, "size": size}, None)


def run_redact(path: Path, target: Path) -> JsonObject:
    """Make the redacted copy of a Cassette in the new folder `target`: `cassetteId`, `secrets`, `replay`."""
    return _run({"kind": "redact", "path": str(path.resolve()), "target": str(target.resolve())}, None)


def size_evidence(path: Path) -> JsonObject:
    """Where the bytes of the Cassette in a folder are. `JobFailed` with its error when it breaks its contract."""
    told = run_verify(path, static_only=True, size=True)
    if told["verdict"] != "accept":
        raise JobFailed(told["error"])
    size: JsonObject = told["size"]
    return size


def _run(request: JsonObject, on_progress: OnProgress | None) -> JsonObject:
    sock, pid = LAUNCHER.spawn(folders.fresh())
    with sock:
        wire = Wire(sock)
        wire.send(request)
        try:
            while True:
                messages = wire.receive(JOB_SECONDS)
                if not messages and not wire.closed:
                    raise JobFailed({"code": "worker_timeout", "message": "The worker took too long and was ended."})
                for message in messages:
                    kind = message.get("kind")
                    if kind == "result":
                        return message
                    if kind == "failed":
                        raise JobFailed(dict(message["error"]))
                    if kind == "progress" and on_progress is not None:
                        on_progress(message)
                if wire.closed:
                    raise JobFailed({"code": "worker_died", "message": "The worker died before it was done."})
        finally:
            if not wire.closed:
                wire.send({"kind": "close"})
            LAUNCHER.kill(pid) if wire.closed else None
