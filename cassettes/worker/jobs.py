"""What a worker can be asked to do, by the first line it gets."""

from __future__ import annotations

import shutil
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from cassettes.core.errors import RepriseError
from cassettes.worker.confine import confine
from cassettes.worker.importing import import_source
from cassettes.worker.redacting import redact_cassette
from cassettes.worker.verifying import verify_cassette
from cassettes.worker.viewing import ViewingWorker
from cassettes.worker.wire import Wire

JsonObject = dict[str, Any]

_FIRST_LINE_SECONDS = 30.0


def run(sock: socket.socket, folder: Path) -> int:
    """Do one job in `folder`, which is removed at the end whatever happens. Gives the exit status."""
    network = confine()
    wire = Wire(sock)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        messages = wire.receive(_FIRST_LINE_SECONDS)
        if not messages:
            return 0
        wire.send({"kind": "ready", "network": network})
        _do(wire, messages[0], folder)
        return 0
    except RepriseError as failure:
        wire.send({"kind": "failed", "error": failure.as_dict()})
        return 1
    except MemoryError:
        wire.send({"kind": "failed", "error": _as_error("worker_out_of_memory", "The worker ran out of memory.")})
        return 1
    except Exception as failure:  # the last line of defence: told, never silent
        traceback.print_exc(file=sys.stderr)
        message = f"The worker met an error that nobody foresaw: {type(failure).__name__}."
        wire.send({"kind": "failed", "error": _as_error("worker_internal_error", message)})
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        wire.send({"kind": "closed"})


def _do(wire: Wire, request: JsonObject, folder: Path) -> None:
    kind = request.get("kind")
    if kind == "open":
        ViewingWorker(wire, request, folder).run()
    elif kind == "import":
        wire.send({"kind": "result", **import_source(request, folder, wire.send)})
    elif kind == "verify":
        wire.send({"kind": "result", **verify_cassette(request, folder)})
    elif kind == "redact":
        wire.send({"kind": "result", **redact_cassette(request, folder)})
    else:
        raise RepriseError(f"{kind!r} is no job.", code="worker_job_unknown")


def _as_error(code: str, message: str) -> JsonObject:
    return {"code": code, "message": message}
