"""A provider thread: the root session's, or a child's."""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.providers.turns import OpenTurn


class PendingRequest(msgspec.Struct):
    """A server request that waits for a person."""

    rpc_id: Any
    method: str
    params: dict[str, Any]
    call_id: str
    request_id: str
    kind: str  # approval, question
    owns_call: bool  # the call exists only for this request


class Thread:
    """State of one thread."""

    def __init__(self, thread_id: str, session_id: str, child: bool = False) -> None:
        self.id = thread_id
        self.session_id = session_id
        self.child = child
        self.title = ""
        self.turn: OpenTurn | None = None
        self.requests: dict[str, PendingRequest] = {}  # by request id
        self.early_output: dict[str, list[str]] = {}  # output of calls that have not begun

    @property
    def live_turn(self) -> OpenTurn | None:
        """The Turn that is going on."""
        return self.turn if self.turn is not None and not self.turn.ended else None
