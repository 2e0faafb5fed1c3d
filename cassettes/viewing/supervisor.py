"""One viewing: its worker, its generations and its viewers.

A supervisor talks to viewers only through the channel layer, so a viewer may sit in any product process. What it
sends may be lost there; every batch is numbered and a viewer that sees a gap asks again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec
from channels.layers import get_channel_layer

from cassettes.core.errors import RepriseError
from cassettes.viewing.worker_link import WorkerLink

JsonObject = dict[str, Any]

log = logging.getLogger(__name__)

LINGER_SECONDS = 3.0  # a reload or a short loss of connection keeps the worker
SILENT_SECONDS = 40.0  # a viewer that was not heard for so long is gone
_encode = msgspec.json.Encoder().encode


def supervisor_channel(viewing_id: str) -> str:
    """Where viewers speak to the supervisor."""
    return f"viewing.supervisor.{viewing_id}"


def viewing_group(viewing_id: str) -> str:
    """Where the supervisor speaks to all viewers."""
    return f"viewing.{viewing_id}"


class Supervisor:
    """Runs until the last viewer has left; `ended` is called then."""

    def __init__(self, viewing_id: str, paths: list[str], start: JsonObject, ended: Callable[[], None]) -> None:
        self.viewing_id = viewing_id
        self.state = "starting"
        # Numbers grow over restarts of the server too: a viewer never takes an old number for a new generation.
        self.generation = self._before_first = int(time.time() * 10)
        self._paths = paths
        self._start = start
        self._ended = ended
        self._layer = get_channel_layer()
        self._viewers: dict[str, float] = {}  # when last heard, by channel
        self._link: WorkerLink | None = None
        self._reading: asyncio.Task[None] | None = None
        self._hearing: asyncio.Future[JsonObject] | None = None
        self._last_seq = 0
        self._reason = ""
        self._empty_since = time.monotonic()

    async def run(self) -> None:
        """Supervise. Whatever happens, no worker is left."""
        try:
            await self._new_generation(self._start)
            while not self._deserted():
                message = await self._next_message()
                if message is not None:
                    await self._handle(message)
        except Exception:
            log.exception("viewing %s broke", self.viewing_id)
            self._reason = "internal error"
            await self._tell_state("died")
        finally:
            self._ended()
            if self._hearing is not None:
                self._hearing.cancel()
            await self._bury()

    # ------------------------------------------------------------------ viewers
    async def _next_message(self) -> JsonObject | None:
        """What a viewer said, or None after half a second. The read goes on meanwhile, so that nothing is lost."""
        if self._hearing is None:
            self._hearing = asyncio.ensure_future(self._layer.receive(supervisor_channel(self.viewing_id)))
        done, _ = await asyncio.wait([self._hearing], timeout=0.5)
        if not done:
            return None
        heard, self._hearing = self._hearing, None
        return dict(heard.result())

    def _deserted(self) -> bool:
        now = time.monotonic()
        for channel, heard in list(self._viewers.items()):
            if now - heard > SILENT_SECONDS:
                del self._viewers[channel]
        if self._viewers:
            self._empty_since = now
        return now - self._empty_since > LINGER_SECONDS

    async def _handle(self, message: JsonObject) -> None:
        channel = str(message["channel"])
        kind = message["type"]
        if kind == "viewer.leave":
            self._viewers.pop(channel, None)
            await self._tell_state(self.state)
            return
        known = channel in self._viewers
        self._viewers[channel] = time.monotonic()
        if kind == "viewer.hello":
            await self._tell_state(self.state, None if not known else channel)
            await self._catch_up(channel, int(message["generation"]), int(message["after"]))
        elif kind == "viewer.ping":
            tip = {"type": "viewing.tip", "generation": self.generation, "seq": self._last_seq}
            await self._layer.send(channel, tip)
        elif kind == "viewer.control":
            await self._control(channel, dict(message["control"]))

    async def _catch_up(self, channel: str, generation: int, after: int) -> None:
        if self._link is not None and self.state != "died":
            known = after if generation == self.generation else 0
            await self._link.send({"kind": "catch-up", "after": known, "request": channel})

    async def _control(self, channel: str, control: JsonObject) -> None:
        if self.state == "died":
            if control.get("command") in ("restart", "seek", "play"):
                await self._new_generation({name: control[name] for name in ("atMs", "checkpoint") if name in control})
        elif self._link is not None:
            await self._link.send({**control, "kind": "control", "client": channel})

    # ------------------------------------------------------------------ the worker
    async def _new_generation(self, start: JsonObject) -> None:
        await self._bury()
        self.generation += 1
        self._last_seq = 0
        self._reason = ""
        await self._tell_state("starting" if self.generation == self._before_first + 1 else "restarting")
        request = {
            "kind": "open",
            "viewingId": self.viewing_id,
            "generation": self.generation,
            "cassettes": self._paths,
            "start": start,
        }
        try:
            self._link = await WorkerLink.start(request)
        except RepriseError as failure:
            self._reason = failure.message
            await self._tell_state("died")
            return
        self._reading = asyncio.create_task(self._read(self._link))

    async def _bury(self) -> None:
        link, self._link = self._link, None
        reading, self._reading = self._reading, None
        if link is not None:
            await link.close()
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    async def _read(self, link: WorkerLink) -> None:
        clean = False
        async for message in link.messages():
            if link is not self._link:
                continue  # an old generation: it is only being emptied
            kind = message.get("kind")
            if kind == "batch":
                self._last_seq = int(message["seq"])
                await self._group(_batch("viewing.batch", message))
            elif kind == "caught-up":
                batch = _batch("viewing.caught_up", message["batch"])
                await self._layer.send(str(message["request"]), {**batch, "done": bool(message["done"])})
            elif kind == "rewind":
                asyncio.get_running_loop().create_task(self._new_generation(dict(message["start"])))
            elif kind == "refused":
                text = _encode({"kind": "refused", "error": message["error"]}).decode()
                if message.get("client"):
                    await self._layer.send(str(message["client"]), {"type": "viewing.text", "text": text})
            elif kind == "ready":
                await self._tell_state("running")
            elif kind == "failed":
                self._reason = str(message["error"].get("message"))
            elif kind == "closed":
                clean = True
        if link is self._link:
            self._reason = self._reason or ("" if clean else "The worker process was ended from outside.")
            await self._tell_state("died")

    # ------------------------------------------------------------------ telling
    async def _tell_state(self, state: str, channel: str | None = None) -> None:
        self.state = state
        message: JsonObject = {
            "kind": "viewing",
            "state": state,
            "generation": self.generation,
            "viewers": len(self._viewers),
        }
        if self._reason:
            message["reason"] = self._reason
        told = {"type": "viewing.text", "text": _encode(message).decode()}
        if channel is None:
            await self._group(told)
        else:
            await self._layer.send(channel, told)

    async def _group(self, message: JsonObject) -> None:
        await self._layer.group_send(viewing_group(self.viewing_id), message)


def _batch(kind: str, batch: JsonObject) -> JsonObject:
    """A batch as it goes through the channel layer: encoded once, with what a viewer needs to order it."""
    seq = int(batch["seq"])
    return {
        "type": kind,
        "generation": int(batch["generation"]),
        "from": int(batch.get("from", seq)),
        "seq": seq,
        "text": _encode(batch).decode(),
    }
