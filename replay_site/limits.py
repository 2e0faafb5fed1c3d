"""A bound on request bodies, before Django writes them to a temporary file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

_ANSWER = b'{"code": "upload_too_large", "message": "The request is too large.", "place": ""}'


class BodyLimit:
    """Answers 413 when a body is, or turns out to be, larger than its path may take."""

    def __init__(self, app: App, *, most: int, upload: int, upload_paths: tuple[str, ...]) -> None:
        self._app = app
        self._most = most
        self._upload = upload
        self._upload_paths = upload_paths

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        limit = self._upload if scope["path"].startswith(self._upload_paths) else self._most
        if _announced(scope) > limit:
            await _refuse(send)
            return
        taken = 0
        refused = False

        async def counted() -> Message:
            nonlocal taken, refused
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > limit:
                refused = True
                await _refuse(send)
                return {"type": "http.disconnect"}
            return message

        async def guarded(message: Message) -> None:
            if not refused:
                await send(message)

        await self._app(scope, counted, guarded)


def _announced(scope: dict[str, Any]) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


async def _refuse(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": _ANSWER})
