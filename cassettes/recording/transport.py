"""The recording transport: live connections pass through, and are recorded while a Recording is armed (§5.1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from cassettes.core.errors import RecordingError
from cassettes.core.tape import TapeManifest
from cassettes.recording.tape import Capture, Tape
from cassettes.session.ports import Chunk, Connection, Launch, Receiver, Transport


class RecordedConnection:
    """A live connection whose traffic is recorded while it is attached."""

    def __init__(self, launch: Launch, number: int) -> None:
        self.launch = launch
        self.capture: Capture | None = None
        self.recording_id = ""
        self.closed = False
        self.live: Connection | None = None
        self._name = f"live-{number}"

    @property
    def connection_id(self) -> str:
        """The tape's id while attached from the start; else a local name."""
        return self._name

    @property
    def capture_origin(self) -> str:
        return self.live.capture_origin if self.live is not None else "process-start"

    @property
    def protocol_version(self) -> int:
        return self.live.protocol_version if self.live is not None else 0

    def attach(self, capture: Capture, recording_id: str, *, rename: bool) -> None:
        """Record from now on."""
        self.capture = capture
        self.recording_id = recording_id
        if rename:
            self._name = capture.connection_id

    def detach(self) -> None:
        """Record no more; the process goes on."""
        if self.capture is not None:
            self.capture.detached = True
        self.capture = None
        self.recording_id = ""

    def send(self, data: bytes) -> None:
        assert self.live is not None
        self.live.send(data)
        if self.capture is not None:
            self.capture.append("outbound", data)

    def close(self) -> None:
        self.closed = True
        if self.live is not None:
            self.live.close()

    def received(self, chunk: Chunk) -> Chunk:
        """Record a chunk; the chunk with its position on the tape."""
        if chunk.kind == "exit":
            self.closed = True
        if self.capture is None:
            return chunk
        seq = self.capture.append(chunk.kind, chunk.data, message=chunk.message, exit_code=chunk.exit_code)
        return msgspec.structs.replace(chunk, chunk_seq=seq)


class RecordingTransport:
    """Wraps a transport. `arm` starts the recording of one root session graph, `complete` or `cancel` ends it."""

    def __init__(self, live: Transport, now: Callable[[], int]) -> None:
        self._live = live
        self._now = now
        self._connections: list[RecordedConnection] = []
        self._tape: Tape | None = None
        self._root = ""
        self._recording_id = ""

    @property
    def recording_id(self) -> str:
        """The generation that is being recorded; empty when none is."""
        return self._recording_id

    def launch(self, launch: Launch, receiver: Receiver) -> RecordedConnection:
        """Start the process, then attach it when its root is being recorded."""
        wrapped = RecordedConnection(launch, len(self._connections) + 1)
        wrapped.live = self._live.launch(launch, lambda chunk: receiver(wrapped.received(chunk)))
        self._connections.append(wrapped)
        if self._tape is not None and _root_of(launch) == self._root:
            try:
                wrapped.attach(self._tape.connect(launch, "process-start"), self._recording_id, rename=True)
            except RecordingError:
                wrapped.close()
                self._drop()
                raise
        return wrapped

    def arm(self, root_session_id: str, recording_id: str, folder: Path) -> None:
        """Record every connection of a root from now on: open ones at once, later ones when they start."""
        root, generation = root_session_id.strip(), recording_id.strip()
        if not root or not generation:
            raise RecordingError("root session and recording id are required", code="transport_arm_failed")
        if self._tape is not None:
            raise RecordingError("another recording is running", code="transport_busy")
        self._tape = Tape(folder, self._now)
        self._root, self._recording_id = root, generation
        try:
            for connection in self._connections:
                if not connection.closed and _root_of(connection.launch) == root:
                    capture = self._tape.connect(connection.launch, "attached-live-connection")
                    connection.attach(capture, generation, rename=False)
        except RecordingError:
            self._drop()
            raise

    def complete(self, root_session_id: str) -> TapeManifest:
        """Detach every connection (no process is closed) and finish the tape."""
        tape = self._armed(root_session_id)
        if not tape.captures:
            raise RecordingError("no provider process was recorded", code="transport_finalize_failed")
        self._detach()
        self._tape, self._root, self._recording_id = None, "", ""
        return tape.finalise()

    def cancel(self, root_session_id: str) -> None:
        """Detach and abort; the tape stays incomplete."""
        self._armed(root_session_id)
        self._drop()

    def finalise(self) -> None:
        """The transport ends: an unfinished recording is aborted."""
        if self._tape is not None:
            self._drop()

    def tape_id(self, connection_id: str) -> str:
        """The tape's id of a live connection; empty when it is not being recorded."""
        for connection in self._connections:
            if connection.connection_id == connection_id and connection.capture is not None:
                return connection.capture.connection_id
        return ""

    def _armed(self, root_session_id: str) -> Tape:
        if self._tape is None or root_session_id.strip() != self._root:
            raise RecordingError("this root is not being recorded", code="transport_not_armed")
        return self._tape

    def _detach(self) -> None:
        for connection in self._connections:
            connection.detach()

    def _drop(self) -> None:
        tape, self._tape, self._root, self._recording_id = self._tape, None, "", ""
        self._detach()
        if tape is not None:
            tape.abort()


def _root_of(launch: Launch) -> str:
    return launch.root_session_id.strip() or launch.session_id.strip()
