"""What pages and sockets ask of viewings: open one, join it, close those of a review link or of a Cassette."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import msgspec
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.core import signing

from cassettes.core.errors import RepriseError
from cassettes.viewing.supervisor import Supervisor

JsonObject = dict[str, Any]

TICKET_SECONDS = 12 * 3600
_SALT = "reprise.viewing"


class TicketRefused(RepriseError):
    """The socket's ticket is forged, too old or for another viewing."""

    code = "viewing_ticket_refused"


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """The right to watch one viewing of one or several Cassettes, signed by the page that made it."""

    viewing_id: str
    cassette_ids: tuple[str, ...]
    link_id: int | None = None
    start: JsonObject = msgspec.field(default_factory=dict)


class OpenedViewing(msgspec.Struct, frozen=True, kw_only=True):
    """A viewing and the path of its socket. The worker starts when the socket connects."""

    viewing_id: str
    socket: str


_running: dict[str, tuple[Supervisor, asyncio.Task[None]]] = {}


def open_viewing(*cassette_ids: str, link_id: int | None = None, start: JsonObject | None = None) -> OpenedViewing:
    """A new viewing of Cassettes for somebody who may watch them (the caller has checked that)."""
    viewing_id = secrets.token_hex(16)
    claim = {"v": viewing_id, "c": list(cassette_ids), "l": link_id, "s": start or {}}
    ticket = signing.dumps(claim, salt=_SALT, compress=True)
    return OpenedViewing(viewing_id=viewing_id, socket=f"/ws/viewings/{viewing_id}/?ticket={ticket}")


def read_ticket(viewing_id: str, ticket: str) -> Ticket:
    """The ticket of a socket. `TicketRefused` when it is not ours, too old or another viewing's."""
    try:
        claim = signing.loads(ticket, salt=_SALT, max_age=TICKET_SECONDS)
    except signing.SignatureExpired as error:
        raise TicketRefused("This viewing is too old.", hint="Reload the page.") from error
    except signing.BadSignature as error:
        raise TicketRefused("This viewing is not known here.", hint="Reload the page.") from error
    if claim.get("v") != viewing_id:
        raise TicketRefused("This ticket is for another viewing.", hint="Reload the page.")
    return Ticket(viewing_id=viewing_id, cassette_ids=tuple(claim["c"]), link_id=claim["l"], start=claim["s"])


def join(ticket: Ticket, cassette_paths: list[str]) -> None:
    """Make sure that the viewing runs. Called in the event loop."""
    if ticket.viewing_id in _running:
        return
    viewing_id = ticket.viewing_id
    supervisor = Supervisor(viewing_id, cassette_paths, ticket.start, lambda: _forget(viewing_id))
    _running[viewing_id] = (supervisor, asyncio.get_running_loop().create_task(supervisor.run()))


def _forget(viewing_id: str) -> None:
    _running.pop(viewing_id, None)


def running() -> list[str]:
    """Ids of the viewings that run in this process."""
    return sorted(_running)


def link_group(link_id: int) -> str:
    """The sockets that came through one review link."""
    return f"review-link.{link_id}"


def cassette_group(cassette_id: str) -> str:
    """The sockets that watch one Cassette."""
    return f"cassette.{cassette_id}"


def close_link(link_id: int) -> None:
    """Close every open socket of a review link: it was revoked."""
    _close(link_group(link_id), "review_link_revoked", "This review link was revoked.")


def close_cassette(cassette_id: str) -> None:
    """Close every open socket of a Cassette: it was discarded."""
    _close(cassette_group(cassette_id), "cassette_discarded", "This Cassette was discarded.")


def _close(group: str, code: str, message: str) -> None:
    told = {"type": "viewing.deny", "code": code, "message": message}
    async_to_sync(get_channel_layer().group_send)(group, told)
