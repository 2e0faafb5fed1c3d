"""The sockets of viewers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import re_path

from cassettes import catalog
from cassettes.core.errors import RepriseError
from cassettes.viewing import service
from cassettes.viewing.sequence import Sequence
from cassettes.viewing.supervisor import supervisor_channel, viewing_group

JsonObject = dict[str, Any]

PING_SECONDS = 5.0
MAX_MESSAGE = 4096  # characters of a control
MAX_MESSAGES_A_SECOND = 60
CLOSE_DENIED = 4403
CLOSE_TOO_MUCH = 4429


class ViewingConsumer(AsyncWebsocketConsumer):
    """Carries one viewer's controls in and a viewing's batches out, complete and in order."""

    async def connect(self) -> None:
        """Check the ticket, join the viewing, and let it run."""
        await self.accept()  # a reason can be told only on an accepted socket
        self.joined = False
        try:
            await self._join()
        except RepriseError as refused:
            await self.viewing_deny({"code": refused.code, "message": refused.message})

    async def _join(self) -> None:
        viewing_id = self.scope["url_route"]["kwargs"]["viewing_id"]
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        ticket = service.read_ticket(viewing_id, query.get("ticket", [""])[0])
        if ticket.link_id is not None and not await database_sync_to_async(catalog.link_is_open)(ticket.link_id):
            raise service.TicketRefused("This review link was revoked or has expired.", code="review_link_closed")
        find = database_sync_to_async(catalog.artifact_path)
        paths = [str(await find(cassette_id)) for cassette_id in ticket.cassette_ids]
        self.viewing_id = viewing_id
        self.sequence = Sequence()
        self.groups_joined = [viewing_group(viewing_id), *map(service.cassette_group, ticket.cassette_ids)]
        if ticket.link_id is not None:
            self.groups_joined.append(service.link_group(ticket.link_id))
        for group in self.groups_joined:
            await self.channel_layer.group_add(group, self.channel_name)
        self.joined = True
        self._window = (0.0, 0)
        service.join(ticket, paths)
        self._pinging = asyncio.get_running_loop().create_task(self._ping())

    async def disconnect(self, code: int) -> None:
        """Leave the viewing."""
        if not self.joined:
            return
        self.joined = False
        self._pinging.cancel()
        await self._tell({"type": "viewer.leave"})
        for group in self.groups_joined:
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A hello or a control. Anything else is ignored; too much of it closes the socket."""
        if not self.joined or text_data is None:
            return
        if len(text_data) > MAX_MESSAGE or not self._in_rate():
            await self.close(CLOSE_TOO_MUCH)
            return
        try:
            message = json.loads(text_data)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if message.get("kind") == "hello":
            self.sequence.hello(_whole(message.get("generation")), _whole(message.get("after")))
            await self._ask()
        elif message.get("kind") == "control":
            await self._tell({"type": "viewer.control", "control": message})

    # ------------------------------------------------------------------ from the supervisor
    async def viewing_text(self, event: JsonObject) -> None:
        await self.send(text_data=event["text"])

    async def viewing_batch(self, event: JsonObject) -> None:
        await self._deliver(self.sequence.live(event))

    async def viewing_caught_up(self, event: JsonObject) -> None:
        await self._deliver(self.sequence.caught_up(event))

    async def viewing_tip(self, event: JsonObject) -> None:
        """The newest batch, told now and then: what was lost last is noticed too."""
        if self.sequence.behind(event["generation"], event["seq"]):
            await self._ask()

    async def viewing_deny(self, event: JsonObject) -> None:
        """Say why, and close."""
        await self.send(text_data=json.dumps({"kind": "denied", "code": event["code"], "message": event["message"]}))
        await self.close(CLOSE_DENIED)

    # ------------------------------------------------------------------ helpers
    async def _deliver(self, texts: list[str]) -> None:
        for text in texts:
            await self.send(text_data=text)
        if self.sequence.wants:
            await self._ask()

    async def _ask(self) -> None:
        generation, after = self.sequence.ask()
        await self._tell({"type": "viewer.hello", "generation": generation, "after": after})

    async def _tell(self, message: JsonObject) -> None:
        with contextlib.suppress(Exception):  # a full channel: the next ping asks again
            await self.channel_layer.send(
                supervisor_channel(self.viewing_id), {**message, "channel": self.channel_name}
            )

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            await self._tell({"type": "viewer.ping"})

    def _in_rate(self) -> bool:
        second, count = self._window
        now = time.monotonic()
        self._window = (now, 1) if now - second >= 1 else (second, count + 1)
        return self._window[1] <= MAX_MESSAGES_A_SECOND


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


websocket_urlpatterns = [re_path(r"^ws/viewings/(?P<viewing_id>[0-9a-f]{32})/$", ViewingConsumer.as_asgi())]
