"""Pages. Each asks catalog and viewing, and shows what they say."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import IO, Any, cast

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.csrf import requires_csrf_token
from django.views.decorators.http import require_GET, require_POST

from cassettes import catalog, uploads
from cassettes.core.errors import Conflict, InputRejected, RepriseError
from cassettes.forms import LinkForm, UploadForm
from cassettes.models import Cassette
from cassettes.viewing import imports, service

JsonObject = dict[str, Any]
View = Callable[..., HttpResponseBase]

PAGE_SIZE = 50
MAX_COMPARED = 8  # a Replay Workspace shows no more
_START_MEMBERS = ("atMs", "checkpoint", "speed", "idleLimitMs", "mode", "paused")
_MAX_START_BYTES = 4096
_CHUNK = 1 << 18
_REPORT_TABLES = (
    ("unknown", "Not recognised"),
    ("changed", "Changed"),
    ("folded", "Known, but no part of the conversation"),
    ("notes", "Worth knowing"),
)
_SIZE_TABLES = (
    ("By message type", "messageTypes"),
    ("By frame kind", "kinds"),
    ("By connection", "connections"),
)
_COLUMNS = (
    ("name", "Name"),
    ("provider", "Provider"),
    ("created_at", "Recorded"),
    ("duration_ms", "Duration"),
    ("turns", "Turns"),
    ("tool_calls", "Tool calls"),
    ("size_bytes", "Size"),
)


# ------------------------------------------------------------------------------------------------- errors
def status_of(error: RepriseError) -> int:
    """The HTTP status that tells best what kind of error this is."""
    if isinstance(error, catalog.Unknown):
        return 410 if error.code == "review_link_closed" else 404
    if error.code == "upload_too_large":
        return 413
    return 409 if isinstance(error, Conflict) else 400 if isinstance(error, InputRejected) else 422


def shows_errors(view: View) -> View:
    """Show a refused request as a page with its code and place."""

    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return view(request, *args, **kwargs)
        except RepriseError as error:
            context = {"error": error.as_dict(), "title": "This did not work"}
            return render(request, "error.html", context, status=status_of(error))

    return shown


def _failure(error: RepriseError) -> JsonResponse:
    return JsonResponse(error.as_dict(), status=status_of(error))


def admins_only(view: View) -> View:
    """Ask who it is; turn members away."""

    @wraps(view)
    @login_required
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_staff:
            raise PermissionDenied("Only an admin may do this.")
        return view(request, *args, **kwargs)

    return guarded


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400."""
    return _plain_error(request, 400, "This request cannot be understood", "Go back and try again.")


@requires_csrf_token
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403."""
    said = str(exception) or "You may not see or do this."
    return _plain_error(request, 403, "Not allowed", said)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404."""
    return _plain_error(request, 404, "There is nothing here", "The address is wrong, or what was here is gone.")


def server_error(request: HttpRequest) -> HttpResponse:
    """500."""
    return _plain_error(request, 500, "Something went wrong here", "It was written to the server's log.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403, when a form is too old or comes from another site."""
    return _plain_error(request, 403, "This form has expired", "Go back, reload the page and try again.")


def _plain_error(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": f"http_{status}", "message": f"{title}. {text}", "place": ""}, status=status)
    return render(request, "error.html", {"title": title, "text": text, "status": status}, status=status)


# ------------------------------------------------------------------------------------------------- catalog
@require_GET
@login_required
def catalog_list(request: HttpRequest) -> HttpResponse:
    """The list of Cassettes."""
    query = request.GET.get("q", "").strip()[:200]
    sort = request.GET.get("sort", "-created_at")
    rows = catalog.search(query, sort)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "query": query,
        "sort": sort,
        "columns": [_column(key, label, sort) for key, label in _COLUMNS],
        "empty": not query and not page.paginator.count,
        "max_upload_mib": uploads.settings.REPRISE_MAX_UPLOAD >> 20,
    }
    return render(request, "catalog.html", context)


def _column(key: str, label: str, sort: str) -> JsonObject:
    """A sortable heading: where a click leads, and how the list is sorted now."""
    ascending_first = key in ("name", "provider")
    now = {key: "ascending", f"-{key}": "descending"}.get(sort, "none")
    up = now == "descending" or (now == "none" and ascending_first)
    number = key not in ("name", "provider", "created_at")
    return {"key": key, "label": label, "now": now, "target": key if up else f"-{key}", "number": number}


@require_POST
@admins_only
@shows_errors
def upload(request: HttpRequest) -> HttpResponse:
    """Take a file from a form without script; with script the page uses the API."""
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        raise InputRejected("No file was sent.", code="upload_missing", hint="Choose an archive or a transcript.")
    file = form.cleaned_data["file"]
    job = uploads.take(file.chunks(), file.name, name=form.cleaned_data["name"], by=request.user)
    return redirect("upload-job", job.pk)


@require_GET
@admins_only
@shows_errors
def upload_job(request: HttpRequest, upload_id: str) -> HttpResponse:
    """What became of an upload."""
    job = uploads.get(upload_id)
    made = (job.result or {}).get("cassettes", [])
    report = (job.result or {}).get("report") or {}
    tables = [(title, sorted((report.get(key) or {}).items())) for key, title in _REPORT_TABLES]
    return render(request, "upload.html", {"job": job, "made": made, "report_tables": tables})


@require_POST
@admins_only
@shows_errors
def decide_upload(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Publish, redact or discard an upload in which secrets were found."""
    job = uploads.decide(upload_id, request.POST.get("decision", ""))
    messages.success(request, f"{job.filename}: {job.message}.")
    return redirect("upload-job", job.pk)


# ------------------------------------------------------------------------------------------------- one Cassette
@require_GET
@login_required
@shows_errors
def cassette(request: HttpRequest, cassette_id: str) -> HttpResponse:
    """A Cassette with its viewer."""
    return _cassette_page(request, catalog.get(cassette_id), LinkForm())


@require_GET
@login_required
@shows_errors
def size(request: HttpRequest, cassette_id: str) -> HttpResponse:
    """Where the bytes of a Cassette are."""
    row = catalog.get(cassette_id)
    found = imports.size_evidence(catalog.artifact_path(cassette_id))
    sums = [(title, found[key]) for title, key in _SIZE_TABLES]
    return render(request, "size.html", {"cassette": row, "size": found, "sums": sums})


def _cassette_page(request: HttpRequest, row: Cassette, form: LinkForm, fresh_url: str = "") -> HttpResponse:
    context = {
        "cassette": row,
        "form": form,
        "fresh_url": fresh_url,
        "links": list(catalog.links(row.pk)) if request.user.is_staff else [],
        "open_url": reverse("open-viewing", args=[row.pk]),
        "back_url": reverse("catalog"),
    }
    return render(request, "cassette.html", context)


@require_POST
@admins_only
@shows_errors
def create_link(request: HttpRequest, cassette_id: str) -> HttpResponse:
    """Make a review link. Its address is in this answer and nowhere else afterwards."""
    form = LinkForm(request.POST)
    row = catalog.get(cassette_id)
    if not form.is_valid():
        return _cassette_page(request, row, form)
    data = form.cleaned_data
    _, token = catalog.create_link(row.pk, expires=data["expires"], label=data["label"], by=request.user)
    url = request.build_absolute_uri(reverse("review", args=[token]))
    return _cassette_page(request, row, LinkForm(), url)


@require_POST
@admins_only
@shows_errors
def revoke_link(request: HttpRequest, cassette_id: str, link_id: int) -> HttpResponse:
    """Revoke a review link; whoever watches through it is cut off."""
    catalog.revoke_link(link_id, cassette_id)
    messages.success(request, "The review link was revoked.")
    return redirect(reverse("cassette", args=[cassette_id]) + "#share")


@require_POST
@admins_only
@shows_errors
def delete(request: HttpRequest, cassette_id: str) -> HttpResponse:
    """Discard a Cassette."""
    name = catalog.get(cassette_id).name
    catalog.delete(cassette_id)
    messages.success(request, f"“{name}” was deleted.")
    return redirect("catalog")


@require_GET
@login_required
async def download(request: HttpRequest, cassette_id: str, kind: str) -> HttpResponseBase:
    """A Cassette as an archive, verified on its way out."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed by the stream
    try:
        await sync_to_async(catalog.export)(cassette_id, f".{kind}", file)
    except RepriseError as error:
        file.close()
        context = {"error": error.as_dict(), "title": "This did not work"}
        return await sync_to_async(render)(request, "error.html", context, status=status_of(error))
    size = file.tell()
    file.seek(0)
    response = StreamingHttpResponse(_stream(file), content_type="application/octet-stream")
    response["Content-Length"] = str(size)
    response["Content-Disposition"] = content_disposition_header(True, f"{cassette_id}.{kind}")
    return response


async def _stream(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk


# ------------------------------------------------------------------------------------------------- viewings
@require_POST
def open_viewing(request: HttpRequest, cassette_id: str) -> JsonResponse:
    """Open a viewing for somebody who is signed in."""
    if not cast(User, request.user).is_authenticated:
        return JsonResponse({"code": "sign_in_needed", "message": "Sign in to watch.", "place": ""}, status=401)
    try:
        catalog.artifact_path(cassette_id)
        return _opened(service.open_viewing(cassette_id, start=_start(request)))
    except RepriseError as error:
        return _failure(error)


@require_GET
@login_required
@shows_errors
def compare(request: HttpRequest) -> HttpResponse:
    """Several Cassettes side by side: `?id=…&id=…`."""
    rows = [catalog.get(cassette_id) for cassette_id in _compared(request)]
    query = "&".join(f"id={row.pk}" for row in rows)
    context = {"cassettes": rows, "open_url": f"{reverse('open-comparison')}?{query}"}
    return render(request, "compare.html", context)


@require_POST
def open_comparison(request: HttpRequest) -> JsonResponse:
    """Open one viewing of several Cassettes for somebody who is signed in."""
    if not cast(User, request.user).is_authenticated:
        return JsonResponse({"code": "sign_in_needed", "message": "Sign in to watch.", "place": ""}, status=401)
    try:
        chosen = _compared(request)
        for cassette_id in chosen:
            catalog.artifact_path(cassette_id)
        return _opened(service.open_viewing(*chosen, start=_start(request)))
    except RepriseError as error:
        return _failure(error)


def _compared(request: HttpRequest) -> list[str]:
    """The Cassettes that shall stand side by side, each once. `workspace_size` when they are too few or too many."""
    chosen = list(dict.fromkeys(request.GET.getlist("id")))
    if not 2 <= len(chosen) <= MAX_COMPARED:
        raise InputRejected(
            f"2 to {MAX_COMPARED} Cassettes can stand side by side.",
            code="workspace_size",
            found=len(chosen),
            hint="Choose them in the list.",
        )
    return chosen


@require_POST
def open_review_viewing(request: HttpRequest, token: str) -> JsonResponse:
    """Open a viewing for somebody with a review link."""
    try:
        link = catalog.open_link(token)
        catalog.artifact_path(link.cassette_id)
        return _opened(service.open_viewing(link.cassette_id, link_id=link.pk, start=_start(request)))
    except RepriseError as error:
        return _failure(error)


def _opened(viewing: service.OpenedViewing) -> JsonResponse:
    return JsonResponse({"viewingId": viewing.viewing_id, "socket": viewing.socket})


def _start(request: HttpRequest) -> JsonObject:
    """How the viewing shall begin. What a member means is for the worker to judge; here only simple values pass."""
    body = request.body
    try:
        message = json.loads(body) if body.strip() and len(body) <= _MAX_START_BYTES else {}
    except (ValueError, RecursionError):
        message = None
    start = message.get("start") or {} if isinstance(message, dict) else None
    if not isinstance(start, dict):
        raise InputRejected("The body must be a JSON object with a member `start`.", code="viewing_start_invalid")
    return {key: start[key] for key in _START_MEMBERS if isinstance(start.get(key), str | int | float | bool)}


@require_GET
def review(request: HttpRequest, token: str) -> HttpResponse:
    """One Cassette, and nothing else, for somebody with a review link."""
    try:
        link = catalog.open_link(token)
    except RepriseError:
        return render(request, "review_closed.html", status=410)
    catalog.count_view(link)
    context = {"cassette": link.cassette, "link": link, "open_url": reverse("open-review-viewing", args=[token])}
    return render(request, "review.html", context)
