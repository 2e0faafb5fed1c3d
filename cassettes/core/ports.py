"""What the recording workflow stands on (spec: recording.md, "Ports the product supplies").

Every call is synchronous and raises when it cannot do its work; the workflow turns that into a Recording's code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from cassettes.core.activity import ActivityEvent
from cassettes.core.checkpoints import CheckpointPlan
from cassettes.core.manifest import CassetteManifest
from cassettes.core.observation import JournalEntry
from cassettes.core.recording import CassetteRow, Recording

StateRole = Literal["initial", "expected"]


class PublishedCassette(msgspec.Struct, frozen=True):
    """A Cassette that became visible: its manifest and the hash of the manifest's bytes."""

    manifest: CassetteManifest
    manifest_sha256: str


class MetadataPort(Protocol):
    """Rows of Recordings and Cassettes."""

    def put(self, recording: Recording) -> None: ...

    def get(self, recording_id: str) -> Recording | None: ...

    def all(self) -> Sequence[Recording]: ...

    def delete(self, recording_id: str) -> None:
        """Delete the Recording's row and, when it has a Cassette, that row with it."""
        ...

    def publish(self, recording: Recording, cassette: CassetteRow) -> None:
        """Write both rows in one commit: both or none."""
        ...


class ReplayStatePort(Protocol):
    """The canonical state of the recorded sessions."""

    def resolve_root(self, agent_session_id: str) -> str:
        """The root session of a session."""
        ...

    def capture(self, root_agent_session_id: str) -> bytes:
        """The bytes of a state file of that session graph."""
        ...

    def wait_settled(self, root_agent_session_id: str, timeout_ms: int) -> bool:
        """Wait until nothing of the graph runs; False when it still does after the time."""
        ...


class ArtifactPort(Protocol):
    """Candidates and Cassettes on disk."""

    def prepare(self, recording: Recording) -> None: ...

    def locate(self, recording: Recording) -> Path:
        """The Cassette's folder when there is one, else the candidate's (cassette-v7 §13.2)."""
        ...

    def append_event(self, recording: Recording, event: ActivityEvent) -> None: ...

    def append_journal(self, recording: Recording, entry: JournalEntry) -> None: ...

    def write_plan(self, recording: Recording, plan: CheckpointPlan) -> None: ...

    def write_state(self, recording: Recording, role: StateRole, data: bytes) -> None: ...

    def publish(
        self, recording: Recording, cassette_id: str, accepted_events: int, created_at_unix_ms: int
    ) -> PublishedCassette:
        """Audit and publish (§13.3). A failure leaves the candidate and nothing else."""
        ...

    def rollback(self, recording: Recording, cassette_id: str) -> None:
        """Take the published folder back to the candidate's place (§13.6)."""
        ...

    def rename(self, cassette_id: str, name: str) -> PublishedCassette: ...

    def discard(self, recording: Recording) -> None:
        """Delete the candidate or the Cassette; absent is fine."""
        ...


class ProcessRecorderPort(Protocol):
    """Records what the provider processes of one root session say."""

    def arm(self, root_agent_session_id: str, generation: str, tape_folder: Path) -> None:
        """Attach to the open connections of the root and record the coming ones; callbacks carry `generation`."""
        ...

    def complete(self, root_agent_session_id: str) -> None:
        """Finish the tape; live processes go on."""
        ...

    def cancel(self, root_agent_session_id: str) -> None:
        """Detach and leave the tape incomplete; not armed is fine."""
        ...
