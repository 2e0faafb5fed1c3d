"""Files that people bring: taken in with a bound, imported by a worker in the background, and always removed."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.db import connections
from django.utils import timezone

from cassettes import catalog, intake
from cassettes.core.errors import Conflict, InputRejected, RepriseError
from cassettes.core.manifest import check_name
from cassettes.models import Upload
from cassettes.viewing import folders
from cassettes.viewing.launcher import LAUNCHER

JsonObject = dict[str, Any]

log = logging.getLogger(__name__)
_pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="import")
_MAX_FILENAME = 120
DECISIONS = ("publish", "redact", "discard")
_HELD = "Secrets were found: decide what shall become of it"
_DECIDED = {"publish": "Published as it is", "redact": "Published as a redacted copy", "discard": "Discarded"}
_STARTED = timezone.now()


class BudgetHandler(FileUploadHandler):
    """Ends a multipart upload that outgrows the largest Cassette."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._taken = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        """Count, and pass on."""
        self._taken += len(raw_data)
        if self._taken > settings.REPRISE_MAX_UPLOAD:
            raise StopUpload(connection_reset=True)
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Another handler keeps the file."""


# ------------------------------------------------------------------------------------------------- taking in
def take(chunks: Iterable[bytes], filename: str, *, name: str = "", by: catalog.Person | None = None) -> Upload:
    """Store what was uploaded and start its import. `upload_empty` and `upload_too_large` leave nothing behind."""
    if name.strip():
        name = check_name(name)
    person = by if isinstance(by, User) else None
    job = Upload(filename=safe_name(filename), name=name.strip(), created_by=person, owner_pid=os.getpid())
    target = _folder(job) / job.filename
    try:
        target.parent.mkdir(parents=True, mode=0o700)
        job.size_bytes = _write(chunks, target)
        job.save()
    except BaseException:
        shutil.rmtree(target.parent, ignore_errors=True)
        raise
    _pool.submit(_run_in_thread, job.pk)
    return job


def _write(chunks: Iterable[bytes], target: Path) -> int:
    taken = 0
    with target.open("xb") as file:
        for chunk in chunks:
            taken += len(chunk)
            if taken > settings.REPRISE_MAX_UPLOAD:
                raise InputRejected(
                    "The file is larger than a Cassette may be.",
                    code="upload_too_large",
                    expected=f"at most {settings.REPRISE_MAX_UPLOAD} bytes",
                )
            file.write(chunk)
    if not taken:
        raise InputRejected("The file is empty.", code="upload_empty", hint="Choose an archive or a transcript.")
    return taken


def safe_name(filename: str) -> str:
    """The last part of a file name without anything that a file system could take amiss."""
    last = PurePosixPath(filename.replace("\\", "/")).name
    cleaned = re.sub(r"[^\w.+ -]", "_", last).strip(". ")
    return cleaned[-_MAX_FILENAME:] or "upload"


def get(upload_id: str) -> Upload:
    """A job by its id. `upload_unknown` when there is none."""
    job = Upload.objects.filter(pk=upload_id).first()
    if job is None:
        raise catalog.Unknown("There is no such upload.", code="upload_unknown")
    return job


def _folder(job: Upload) -> Path:
    return Path(settings.REPRISE_HOME) / "uploads" / job.pk


# ------------------------------------------------------------------------------------------------- the job
def _run_in_thread(upload_id: str) -> None:
    try:
        run(upload_id)
    except Exception:
        log.exception("upload %s broke", upload_id)
    finally:
        connections.close_all()


def run(upload_id: str) -> None:
    """Import an upload that was taken in. The outcome is in its row; the file is gone afterwards."""
    job = get(upload_id)
    _note(job, state=Upload.State.RUNNING, message="Starting a worker")
    try:
        source = _folder(job) / job.filename
        result = intake.take_in(
            source,
            name=job.name or None,
            policy="hold",
            held=intake.aside(job.pk),
            on_progress=lambda said: _progress(job, said),
        )
        held = any(made["held"] for made in result["cassettes"])
        state, message = (Upload.State.HELD, _HELD) if held else (Upload.State.DONE, "Done")
        _note(job, state=state, progress=100, message=message, result=result)
    except RepriseError as refused:
        _note(job, state=Upload.State.FAILED, message=refused.message, error=refused.as_dict())
    except Exception as failure:
        log.exception("import of upload %s failed", upload_id)
        error = {"code": "import_failed", "message": f"The import failed: {type(failure).__name__}.", "place": ""}
        _note(job, state=Upload.State.FAILED, message=error["message"], error=error)
    finally:
        shutil.rmtree(_folder(job), ignore_errors=True)


def decide(upload_id: str, decision: str) -> Upload:
    """What shall become of an upload that is held back: `publish`, `redact` or `discard`.

    `upload_not_held` when nothing is to be decided (any more); a redaction that fails leaves it held back.
    """
    if decision not in DECISIONS:
        raise InputRejected(
            "This is no decision.", code="decision_invalid", expected=", ".join(DECISIONS), found=decision
        )
    job = get(upload_id)
    taken = Upload.objects.filter(pk=job.pk, state=Upload.State.HELD).update(state=Upload.State.RUNNING)
    if not taken:
        raise Conflict("Nothing about this upload is to be decided.", code="upload_not_held")
    folder, result = intake.aside(job.pk), job.result or {"cassettes": []}
    try:
        for made in result["cassettes"]:
            if made["held"] and decision != "discard":
                (intake.redact if decision == "redact" else intake.publish)(folder, made)
    except BaseException:
        _note(job, state=Upload.State.HELD)
        raise
    intake.discard(folder)
    if decision == "discard":
        result["cassettes"] = []
    _note(job, state=Upload.State.DONE, message=_DECIDED[decision], result=result)
    return job


def _progress(job: Upload, message: JsonObject) -> None:
    done, total = message.get("done"), message.get("total")
    if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
        job.progress = max(0, min(99, round(100 * done / total)))
    text = str(message.get("message") or message.get("step") or job.message)
    _note(job, progress=job.progress, message=text)


def _note(job: Upload, **fields: Any) -> None:
    for field, value in fields.items():
        setattr(job, field, value[:300] if field == "message" else value)
    job.save(update_fields=list(fields))


# ------------------------------------------------------------------------------------------------- start-up
def start_server() -> None:
    """What a server does when it starts: remove what dead servers left, and make a worker start quickly."""
    try:
        folders.sweep()
        catalog.store().sweep()
        catalog.reconcile()
        sweep()
    except Exception:  # such as a database that was not migrated: requests will say so
        log.exception("sweeping failed")
    finally:
        connections.close_all()
    LAUNCHER.warm_up()


def sweep() -> int:
    """Close the jobs, and remove the files, of servers that are gone; gives how many jobs."""
    open_jobs = Upload.objects.filter(state__in=(Upload.State.QUEUED, Upload.State.RUNNING))
    lost = [job for job in open_jobs.filter(created_at__lt=_STARTED) if not _elsewhere(job.owner_pid)]
    for job in lost:
        error = {"code": "upload_interrupted", "message": "The server ended during the import.", "place": ""}
        error["hint"] = "Upload the file again."
        _note(job, state=Upload.State.FAILED, message=error["message"], error=error)
    working = set(open_jobs.values_list("pk", flat=True))
    held = set(Upload.objects.filter(state=Upload.State.HELD).values_list("pk", flat=True))
    for base, kept in (("uploads", working), ("held", working | held)):
        _sweep_folder(Path(settings.REPRISE_HOME) / base, kept)
    return len(lost)


def _sweep_folder(base: Path, kept: set[str]) -> None:
    for folder in list(base.iterdir()) if base.is_dir() else ():
        if folder.name not in kept and folder.stat().st_mtime < _STARTED.timestamp():
            shutil.rmtree(folder, ignore_errors=True)


def _elsewhere(pid: int) -> bool:
    """Whether another living process may be at work. A job older than this process is not this process's."""
    return pid != os.getpid() and Path(f"/proc/{pid}").exists()
