"""What every answer passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.functional import SimpleLazyObject

Handler = Callable[[HttpRequest], HttpResponseBase]

LOCAL_ADMIN = "local-admin"
_NOT_NEEDED = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"
_LOOPBACK = ("127.0.0.1", "::1", "")  # "" is a local socket


class PrivateAnswers:
    """Tells browsers what this site never needs, and keeps pages out of shared caches."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        response.headers.setdefault("Permissions-Policy", _NOT_NEEDED)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class OpenHouse:
    """With `REPRISE_OPEN=1` whoever sits at this machine is an admin without signing in.

    Settings refuse host names other than the loopback's then; here a request that came from elsewhere or through a
    proxy is not let in either.
    """

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if settings.REPRISE_OPEN:
            if not _from_here(request):
                return HttpResponse("This server is open to its own machine only.", "text/plain", 403)
            request.user = cast(User, SimpleLazyObject(local_admin))
            request.auser = sync_to_async(local_admin)  # async views ask for the person this way
        return self._get_response(request)


def _from_here(request: HttpRequest) -> bool:
    return request.META.get("REMOTE_ADDR", "") in _LOOPBACK and "HTTP_X_FORWARDED_FOR" not in request.META


def local_admin() -> User:
    """The admin that everybody is in an open house. It has no password and cannot sign in."""
    users = get_user_model().objects
    user, created = users.get_or_create(username=LOCAL_ADMIN, defaults={"is_staff": True, "is_superuser": True})
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user
