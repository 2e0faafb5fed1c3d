"""The API, below /api/. Every error is a JSON object with `code`, `message` and `place`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import ModelSchema, NinjaAPI, Query, Schema, Status
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.security.session import SessionAuth

from cassettes import catalog, uploads
from cassettes.core.errors import InputRejected, RepriseError
from cassettes.models import Cassette, ReviewLink, Upload
from cassettes.viewing import imports
from cassettes.views import status_of

log = logging.getLogger(__name__)
_CHUNK = 1 << 18
_WORDS = {400: "request_invalid", 401: "sign_in_needed", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}


class Session(SessionAuth):
    """Django's sign-in. In an open house a program on this machine needs no CSRF token; a browser always does."""

    def _get_key(self, request: HttpRequest) -> str | None:
        from_browser = any(name in request.headers for name in ("Origin", "Cookie", "Sec-Fetch-Site", "Referer"))
        if settings.REPRISE_OPEN and not from_browser:
            return None
        return super()._get_key(request)


api = NinjaAPI(title="Reprise", version="1", auth=Session(), docs_url=None, urls_namespace="api")


# ------------------------------------------------------------------------------------------------- shapes
class CassetteOut(ModelSchema):
    """A Cassette as the catalog has it."""

    class Meta:
        model = Cassette
        fields = "__all__"


class UploadOut(ModelSchema):
    """An upload and what became of it."""

    class Meta:
        model = Upload
        exclude = ("owner_pid", "created_by")


class LinkOut(Schema):
    """A review link. Its address is told only when it is made."""

    id: int
    label: str
    state: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    views: int


class LinkMade(LinkOut):
    """A review link that was just made."""

    url: str


class LinkIn(Schema):
    """What a review link shall be."""

    expires: str = "7d"
    label: str = ""


class NameIn(Schema):
    """A new name."""

    name: str


class DecisionIn(Schema):
    """What shall become of an upload that is held back."""

    decision: str


class Page(Schema):
    """A part of the list of Cassettes."""

    count: int
    items: list[CassetteOut]


class Listing(Schema):
    """Which part of the list."""

    q: str = ""
    sort: str = "-created_at"
    offset: int = 0
    limit: int = 50


# ------------------------------------------------------------------------------------------------- Cassettes
@api.get("/cassettes", response=Page)
def list_cassettes(request: HttpRequest, listing: Query[Listing]) -> dict[str, Any]:
    """The Cassettes whose name, title or id holds the words of `q`."""
    rows = catalog.search(listing.q, listing.sort)
    offset, limit = max(0, min(listing.offset, 1 << 40)), max(1, min(listing.limit, 500))
    return {"count": rows.count(), "items": list(rows[offset : offset + limit])}


@api.get("/cassettes/{cassette_id}", response=CassetteOut)
def get_cassette(request: HttpRequest, cassette_id: str) -> Cassette:
    """One Cassette."""
    return catalog.get(cassette_id)


@api.patch("/cassettes/{cassette_id}", response=CassetteOut)
def rename_cassette(request: HttpRequest, cassette_id: str, new: NameIn) -> Cassette:
    """Give a Cassette another name."""
    _admin(request)
    return catalog.rename(cassette_id, new.name)


@api.delete("/cassettes/{cassette_id}", response={204: None})
def delete_cassette(request: HttpRequest, cassette_id: str) -> Status[None]:
    """Discard a Cassette."""
    _admin(request)
    catalog.delete(cassette_id)
    return Status(204, None)


@api.post("/cassettes/{cassette_id}/verify", response=dict[str, Any])
def verify_cassette(request: HttpRequest, cassette_id: str, static: bool = False) -> dict[str, Any]:
    """Verify a Cassette; with `static` without replay."""
    _admin(request)
    return imports.run_verify(catalog.artifact_path(cassette_id), static_only=static)


@api.get("/cassettes/{cassette_id}/size", response=dict[str, Any])
def get_size(request: HttpRequest, cassette_id: str) -> dict[str, Any]:
    """Where the bytes of a Cassette are."""
    return imports.size_evidence(catalog.artifact_path(cassette_id))


# ------------------------------------------------------------------------------------------------- uploads
@api.post("/uploads", response={202: UploadOut})
def upload(request: HttpRequest, filename: str = "", name: str = "") -> Status[Upload]:
    """Upload an archive or a transcript: as the field `file` of a form, or as the body with `?filename=`."""
    _admin(request)
    if request.content_type == "multipart/form-data":
        file = request.FILES.get("file")
        if file is None:
            raise InputRejected("The form has no file in its field `file`.", code="upload_missing")
        name = name or str(request.POST.get("name", ""))
        return Status(202, uploads.take(file.chunks(), file.name or filename, name=name, by=request.user))
    return Status(202, uploads.take(_body(request), filename, name=name, by=request.user))


def _body(request: HttpRequest) -> Iterator[bytes]:
    while chunk := request.read(_CHUNK):
        yield chunk


@api.get("/uploads/{upload_id}", response=UploadOut)
def get_upload(request: HttpRequest, upload_id: str) -> Upload:
    """What became of an upload."""
    _admin(request)
    return uploads.get(upload_id)


@api.post("/uploads/{upload_id}/decision", response=UploadOut)
def decide_upload(request: HttpRequest, upload_id: str, wanted: DecisionIn) -> Upload:
    """Publish an upload in which secrets were found, publish its redacted copy, or discard it."""
    _admin(request)
    return uploads.decide(upload_id, wanted.decision)


# ------------------------------------------------------------------------------------------------- review links
@api.get("/cassettes/{cassette_id}/links", response=list[LinkOut])
def list_links(request: HttpRequest, cassette_id: str) -> list[ReviewLink]:
    """The review links of a Cassette."""
    _admin(request)
    return list(catalog.links(catalog.get(cassette_id).pk))


@api.post("/cassettes/{cassette_id}/links", response={201: LinkMade})
def create_link(request: HttpRequest, cassette_id: str, wanted: LinkIn) -> Status[dict[str, Any]]:
    """Make a review link."""
    _admin(request)
    link, token = catalog.create_link(cassette_id, expires=wanted.expires, label=wanted.label, by=request.user)
    return Status(201, {**LinkOut.from_orm(link).dict(), "url": request.build_absolute_uri(f"/review/{token}/")})


@api.delete("/cassettes/{cassette_id}/links/{link_id}", response=LinkOut)
def revoke_link(request: HttpRequest, cassette_id: str, link_id: int) -> ReviewLink:
    """Revoke a review link."""
    _admin(request)
    return catalog.revoke_link(link_id, cassette_id)


def _admin(request: HttpRequest) -> None:
    if not request.user.is_staff:
        raise HttpError(403, "Only an admin may do this.")


# ------------------------------------------------------------------------------------------------- errors
def _answer(request: HttpRequest, status: int, message: str, *, code: str = "", place: str = "") -> HttpResponse:
    error = {"code": code or _WORDS.get(status, f"http_{status}"), "message": message, "place": place}
    return api.create_response(request, error, status=status)


@api.exception_handler(RepriseError)
def _refused(request: HttpRequest, error: RepriseError) -> HttpResponse:
    return api.create_response(request, error.as_dict(), status=status_of(error))


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first = error.errors[0] if error.errors else {}
    place = ".".join(str(part) for part in first.get("loc", ()))
    message = str(first.get("msg", "The request is not valid."))
    return _answer(request, 422, message, code="request_invalid", place=place)


@api.exception_handler(AuthenticationError)
def _unknown_person(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return _answer(request, 401, "Sign in first.")


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return _answer(request, error.status_code, str(error))


@api.exception_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return _answer(request, 404, "There is nothing here.")


@api.exception_handler(MultiPartParserError)
@api.exception_handler(RequestDataTooBig)
@api.exception_handler(UnreadablePostError)
def _unreadable(request: HttpRequest, error: Exception) -> HttpResponse:
    return _answer(request, 400, str(error) or "The request cannot be read.", code="request_unreadable")


@api.exception_handler(Exception)
def _broken(request: HttpRequest, error: Exception) -> HttpResponse:
    log.exception("the API failed at %s", request.path)
    return _answer(request, 500, "Something went wrong here: see the server's log.", code="internal_error")
