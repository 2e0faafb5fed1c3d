"""The replay transport: a fail-closed tape instead of a provider process (provider-tape §8-§10, §12).

Nothing blocks. A send waits in the connection's outbox until the tape's cursor stands at an outbound frame; then it is
compared, and a difference ends the Surface. Inbound frames have a due time; whoever drives the Surface releases them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.core.errors import Place, ReplayFailed, shown
from cassettes.core.tape import Frame
from cassettes.core.tape import TapeConnection as RecordedConnection
from cassettes.providers import registry
from cassettes.providers.inbound import InboundTransform
from cassettes.providers.matching import Matcher, is_optional_probe, probe_id
from cassettes.providers.ports import Provider
from cassettes.session.ports import Chunk, Launch, Receiver

JsonObject = dict[str, Any]
_PROBE_GRACE_MS = 50.0
_FRAMES = "provider/frames.jsonl"
_VERSION = re.compile(rb'"version":\s*([0-9]{1,3})[,}]')


class TapeConnection:
    """One recorded connection being replayed. Playback time in milliseconds throughout."""

    def __init__(
        self,
        recorded: RecordedConnection,
        provider: Provider,
        frames: Iterator[Frame],
        receiver: Receiver,
        matcher: Matcher,
        inbound: InboundTransform,
        started_at: float,
        now: Callable[[], float],
    ) -> None:
        self.recorded = recorded
        self.asserted = 0
        self.consumed = 0
        self.closed = False
        self.not_asserted: list[str] = []
        self._provider = provider
        self._frames = frames
        self._receiver = receiver
        self._matcher = matcher
        self._inbound = inbound
        self._now = now
        self._outbox: deque[bytes] = deque()
        self._anchor_time = started_at
        self._anchor_elapsed = 0.0
        self._head: Frame | None = next(frames, None)
        self._head_since = started_at
        self._probe_run = False

    @property
    def connection_id(self) -> str:
        return self.recorded.connection_id

    @property
    def capture_origin(self) -> str:
        return self.recorded.capture_origin

    @property
    def protocol_version(self) -> int:
        """Envelope version of the first recorded message (provider-adapters §1, version note)."""
        found = _VERSION.search(self._head.data) if self._head is not None else None
        return int(found.group(1)) if found is not None else 0

    @property
    def at_end(self) -> bool:
        return self._head is None

    def send(self, data: bytes) -> None:
        """Queue bytes for the comparison with the next outbound frame."""
        self._outbox.append(data)

    def close(self) -> None:
        self.closed = True

    # ------------------------------------------------------------------ outbound

    def can_match(self) -> bool:
        """Is there a send that can be decided now?"""
        if not self._outbox:
            return False
        head = self._head
        return head is None or head.kind == "outbound" or is_optional_probe(self._outbox[0], self._provider)

    def match(self) -> None:
        """Decide the first send of the outbox (provider-tape §9): `outbound_mismatch` or `outbound_after_end`."""
        live = self._outbox[0]
        head = self._head
        if head is None or head.kind != "outbound":
            if is_optional_probe(live, self._provider):
                self._outbox.popleft()
                return
            raise self._failure("outbound_after_end", "the session sent more than was recorded", None, live)
        outcome = self._matcher.match(head.data, live)
        if outcome.matched:
            self._outbox.popleft()
            self._probe_run = False
            self.asserted += 1
            self.not_asserted += outcome.not_asserted
            self._advance(outbound=True)
            return
        recorded_probe = probe_id(head.data, self._provider)
        if recorded_probe is not None:
            self._skip(recorded_probe)
            return
        if is_optional_probe(live, self._provider):
            self._outbox.popleft()
            return
        raise self._failure("outbound_mismatch", outcome.reason, head.data, live, outcome.path)

    def expects_send(self) -> bool:
        """The tape stands at an outbound frame and nothing was sent."""
        return self._head is not None and self._head.kind == "outbound" and not self._outbox

    def missing_send(self) -> ReplayFailed:
        """The failure when the expected send never came."""
        assert self._head is not None
        return self._failure("outbound_missing", "the session never sent what was recorded", self._head.data, None)

    # ------------------------------------------------------------------ inbound

    def due(self) -> float | None:
        """When the frame at the cursor may be released; None while the tape waits for a send or has ended."""
        head = self._head
        if head is None:
            return None
        if head.kind == "outbound":
            if self._outbox or probe_id(head.data, self._provider) is None:
                return None
            return self._head_since if self._probe_run else self._head_since + _PROBE_GRACE_MS
        return self._anchor_time + max(0.0, head.elapsed_ms - self._anchor_elapsed)

    def release(self) -> None:
        """Deliver the inbound frame at the cursor, or skip a recorded probe that was never sent."""
        head = self._head
        assert head is not None
        if head.kind == "outbound":
            recorded = probe_id(head.data, self._provider)
            assert recorded is not None
            self._skip(recorded)
            self._probe_run = True
            return
        data = self._inbound.transform(head.kind, head.data)
        self._advance(outbound=False)
        if data or head.kind == "exit" or head.message:
            self._probe_run = False
            kind = head.kind
            assert kind in {"stdout", "stderr", "exit"}
            self._receiver(
                Chunk(
                    kind=kind,  # type: ignore[arg-type]
                    data=data,
                    chunk_seq=head.chunk_seq,
                    message=head.message,
                    exit_code=head.exit_code,
                )
            )

    def _skip(self, recorded_id: str) -> None:
        self._inbound.skip_response(recorded_id)
        self._advance(outbound=True)

    def _advance(self, *, outbound: bool) -> None:
        """Move past the head. A matched send pulls the connection's recorded position forward (§12.1)."""
        head = self._head
        assert head is not None
        now = self._now()
        position = self._anchor_elapsed + (now - self._anchor_time)
        if outbound:
            self._anchor_time, self._anchor_elapsed = now, max(position, float(head.elapsed_ms))
        self.consumed += 1
        self._head_since = now
        self._head = next(self._frames, None)

    def _failure(
        self, code: str, message: str, recorded: bytes | None, live: bytes | None, path: str = ""
    ) -> ReplayFailed:
        head = self._head
        where = f"{self.connection_id} chunk {head.chunk_seq}" if head is not None else f"{self.connection_id} end"
        return ReplayFailed(
            message,
            code=code,
            place=Place(file=_FRAMES, line=head.global_seq if head is not None else 0, path=f"{where} {path}".strip()),
            expected=None if recorded is None else _text(recorded),
            found=None if live is None else _text(live),
        )


class ReplayTransport:
    """Chooses the recorded connection for each launch, and drives all of them."""

    def __init__(self, cassette: CassetteFolder, *, home: str, now: Callable[[], float]) -> None:
        self._cassette = cassette
        self._home = home
        self._now = now
        self._manifest = cassette.tape_manifest()
        self._by_key = {
            (one.agent_session_id, registry.provider(one.provider).id, one.launch_ordinal): one
            for one in self._manifest.connections
        }
        self._launches: dict[tuple[str, str], int] = {}
        self._started: dict[str, TapeConnection] = {}
        self._sessions: dict[str, str] = {}  # live session -> recorded session

    @property
    def frame_count(self) -> int:
        return self._manifest.frame_count

    @property
    def asserted(self) -> int:
        """Outbound frames that were compared and equal."""
        return sum(one.asserted for one in self._started.values())

    @property
    def consumed(self) -> int:
        return sum(one.consumed for one in self._started.values())

    def launch(self, launch: Launch, receiver: Receiver) -> TapeConnection:
        """Hand out the recorded connection of (session, provider, ordinal); `launch_unregistered` without one."""
        provider = registry.provider(launch.provider)
        counted = (launch.session_id, provider.id)
        self._launches[counted] = ordinal = self._launches.get(counted, 0) + 1
        recorded_session = self._sessions.get(launch.session_id, launch.session_id)
        recorded = self._by_key.get((recorded_session, provider.id, ordinal))
        if recorded is None and launch.session_id == launch.root_session_id:
            recorded = self._sole_root(provider.id, ordinal)
            if recorded is not None:
                self._sessions[launch.session_id] = recorded.agent_session_id
        if recorded is None or recorded.connection_id in self._started:
            raise ReplayFailed(
                f"launch {ordinal} of {provider.id} for session {launch.session_id} was never recorded",
                code="launch_unregistered",
                place=Place(file="provider/manifest.json", path="$.connections"),
            )
        if self._sessions.get(launch.root_session_id, launch.root_session_id) != recorded.root_agent_session_id:
            raise ReplayFailed(
                "the launching session has another root than the recorded one",
                code="launch_root_mismatch",
                expected=recorded.root_agent_session_id,
                found=launch.root_session_id,
            )
        matcher = Matcher(provider, cwd_token=recorded.cwd_token, cwd=launch.cwd, home=self._home)
        connection = TapeConnection(
            recorded,
            provider,
            self._frames_of(recorded.connection_id),
            receiver,
            matcher,
            InboundTransform(provider, matcher),
            self._now(),
            self._now,
        )
        self._started[recorded.connection_id] = connection
        return connection

    def open_connections(self) -> list[TapeConnection]:
        """Started connections that still have frames."""
        return [one for one in self._started.values() if not one.at_end]

    def can_match(self) -> bool:
        return any(one.can_match() for one in self._started.values())

    def match(self) -> bool:
        """Decide one send, if any can be decided."""
        for connection in self._started.values():
            if connection.can_match():
                connection.match()
                return True
        return False

    def release(self, connection: TapeConnection) -> None:
        connection.release()

    def drained(self) -> bool:
        """Every required connection was started, and every started one is at its end."""
        return not self._unstarted() and all(one.at_end for one in self._started.values())

    def verify_complete(self) -> None:
        """`incomplete_consumption` unless drained (provider-tape §12.2)."""
        if not self.drained():
            raise self.incomplete()

    def incomplete(self) -> ReplayFailed:
        """What of the tape was not consumed."""
        unstarted = self._unstarted()
        open_ones = [f"{one.connection_id} at {one.consumed}" for one in self._started.values() if not one.at_end]
        return ReplayFailed(
            "the tape was not consumed to its end",
            code="incomplete_consumption",
            place=Place(file=_FRAMES),
            expected=f"{self.frame_count} frames on {len(self._manifest.connections)} connections",
            found=", ".join([f"{one} never launched" for one in unstarted] + open_ones),
        )

    def missing_send(self) -> ReplayFailed | None:
        """The failure of the first connection that waits for a send, if any does."""
        return next((one.missing_send() for one in self._started.values() if one.expects_send()), None)

    def waiting_for(self) -> list[str]:
        """What each connection waits for, in words."""
        return [f"{one.connection_id} waits for a send" for one in self._started.values() if one.expects_send()]

    def not_asserted(self) -> list[str]:
        """Recorded parameters that were taken as they are."""
        return [text for one in self._started.values() for text in one.not_asserted]

    def close(self) -> None:
        for connection in self._started.values():
            connection.close()

    def _frames_of(self, connection_id: str) -> Iterator[Frame]:
        single = len(self._manifest.connections) == 1
        return (one for one in self._cassette.frames() if single or one.connection_id == connection_id)

    def _sole_root(self, provider: str, ordinal: int) -> RecordedConnection | None:
        candidates = [
            one
            for one in self._manifest.connections
            if one.connection_id not in self._started
            and registry.provider(one.provider).id == provider
            and one.launch_ordinal == ordinal
            and one.agent_session_id == one.root_agent_session_id
        ]
        return candidates[0] if len(candidates) == 1 else None

    def _unstarted(self) -> list[str]:
        missing = [one for one in self._manifest.connections if one.connection_id not in self._started]
        return [one.connection_id for one in missing if not self._optional(one)]

    def _optional(self, recorded: RecordedConnection) -> bool:
        """A later launch that only said hello and probed may be absent (provider-tape §12.2)."""
        if recorded.launch_ordinal <= 1:
            return False
        provider = registry.provider(recorded.provider)
        probes = 0
        for frame in self._frames_of(recorded.connection_id):
            if frame.kind != "outbound":
                continue
            if is_optional_probe(frame.data, provider):
                probes += 1
            elif not any(mark in frame.data for mark in (b'"initialize"', b'"initialized"')):
                return False
        return probes > 0


def _text(data: bytes) -> str:
    return shown(data.decode("utf-8", "replace").rstrip("\n"))
