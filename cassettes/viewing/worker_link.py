"""The supervisor's end of a worker: its socket in the event loop, and its certain end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from cassettes.viewing import folders
from cassettes.viewing.launcher import LAUNCHER
from cassettes.worker.wire import MAX_LINE, LineBuffer, encode

JsonObject = dict[str, Any]

_CLOSE_SECONDS = 3.0


class WorkerLink:
    """One running worker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        self._reader = reader
        self._writer = writer
        self._gone = asyncio.Event()
        self.pid = pid

    @classmethod
    async def start(cls, request: JsonObject) -> WorkerLink:
        """Start a worker and give it its job. `WorkerStartFailed` when none can be started."""
        folder = folders.fresh()
        sock, pid = await asyncio.to_thread(LAUNCHER.spawn, folder)
        reader, writer = await asyncio.open_connection(sock=sock, limit=MAX_LINE)
        link = cls(reader, writer, pid)
        await link.send({**request, "folder": str(folder)})
        return link

    async def send(self, message: JsonObject) -> None:
        """Say something to the worker; nothing happens when it is gone."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._writer.write(encode(message))
            await self._writer.drain()

    async def messages(self) -> AsyncIterator[JsonObject]:
        """What the worker says, until it is gone."""
        buffer = LineBuffer()
        try:
            while True:
                try:
                    data = await self._reader.read(1 << 18)
                except ConnectionError:
                    return
                if not data:
                    return
                for message in buffer.feed(data):
                    yield message
        finally:
            self._gone.set()

    async def close(self) -> None:
        """Ask the worker to end, and kill it when it does not within 3 s. Somebody must be reading `messages`."""
        await self.send({"kind": "close"})
        try:
            await asyncio.wait_for(self._gone.wait(), _CLOSE_SECONDS)
        except TimeoutError:
            await asyncio.to_thread(LAUNCHER.kill, self.pid)
        self._writer.close()
