"""Import a transcript: play it as a provider, and record that session like any other (architecture §2).

The whole recording runs on a virtual clock, so it takes no longer than the machine needs, and every recorded time is
the transcript's own. The same file always becomes the same Cassette.
"""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import InputRejected, Place
from cassettes.core.manifest import MAX_NAME, ComposerDefaults, ReplayPrerequisites
from cassettes.core.recording import CREATE_SESSION
from cassettes.core.state import ReplayState
from cassettes.core.workflow import StartRequest
from cassettes.engine.engine import ActivityEngine
from cassettes.host.host import Host
from cassettes.providers import registry
from cassettes.recording.recorder import SCOPE, SessionRecorder
from cassettes.recording.transport import RecordingTransport
from cassettes.session.ids import SeededIds
from cassettes.session.session import AgentSession
from cassettes.transcripts.player import TranscriptTransport
from cassettes.transcripts.portable import MAX_TEXT, Portable
from cassettes.transcripts.reading import read_transcript
from cassettes.transcripts.schedule import PERSON, Schedule
from cassettes.transcripts.script import Guide, Report, Script, Turn

JsonObject = dict[str, Any]
OnTurn = Callable[[int, int], None]

# The folder the recorded session believes to work in. It need not exist; a Cassette only holds its token.
PROJECT_FOLDER = "/replay/project"
_NAMESPACE = uuid.UUID("8d0c3b0e-7a0f-4f0e-8c0b-55a1c9d0a2f7")


class ImportedTranscript(msgspec.Struct, frozen=True, kw_only=True):
    """A Cassette made from a transcript. `created` is False when exactly this one was published before."""

    cassette_id: str
    path: Path
    report: Report
    records: int
    entities: int
    created: bool


def import_transcript(
    path: Path,
    store: ArtifactStore,
    *,
    name: str = "",
    children: Sequence[Path] = (),
    parent: Path | None = None,
    scratch: Path | None = None,
    on_turn: OnTurn | None = None,
) -> ImportedTranscript:
    """Record the session of a transcript file and publish it.

    `name` is the display name (default: the title or the first prompt), `on_turn` hears of turns done and in all,
    `scratch` is where the temporary database lies.
    Raises InputRejected for what is no transcript, RecordingError with the code of the step that failed; then nothing
    is left in the store.
    """
    script = read_transcript(path, children=children, parent=parent)
    provider = registry.find(script.provider)
    if provider is None:
        raise InputRejected("No adapter for this agent.", code="provider_unsupported", place=Place(file=path.name))
    identity = _Identity(path, script)
    created = not store.holds(identity.cassette)
    if created:
        with tempfile.TemporaryDirectory(prefix="reprise-import-", dir=scratch) as folder_name:
            take = _Take(script, provider.target, identity, store, Path(folder_name), name, on_turn)
            try:
                take.record()
            finally:
                take.close()
    # What was just published was verified on its way; what was there before may have been damaged since.
    folder = store.folder(identity.cassette) if created else store.resolve(identity.cassette)
    return ImportedTranscript(
        cassette_id=identity.cassette,
        path=folder.path,
        report=script.report,
        records=script.report.records,
        entities=count_entities(folder.expected_state()),
        created=created,
    )


def default_name(script: Script) -> str:
    """The title of the session, else the first line of its first prompt, else its id."""
    candidates = [script.title, *(turn.display or turn.text for turn in script.turns[:3]), script.session_id]
    for text in candidates:
        line = " ".join(text.split())
        line = "".join(char for char in line if char.isprintable())
        if line:
            return line if len(line) <= MAX_NAME else line[: MAX_NAME - 1].rstrip() + "…"
    return "Session"


class _Identity:
    """Ids that depend only on what was imported."""

    def __init__(self, path: Path, script: Script) -> None:
        steps = sum(len(turn.steps) for turn in script.turns)  # differs when files of subagents were there
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        self.seed = f"{content}:{script.session_id}:{steps}"
        self.cassette = self._new("cassette")
        self.recording = self._new("recording")
        self.root = self._new("session")

    def _new(self, what: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.seed}:{what}"))

    def fresh(self) -> Iterator[str]:
        """What the workflow asks for: the id of the Recording, then that of the Cassette."""
        yield self.recording
        yield self.cassette


class _Take:
    """One recording of one script."""

    def __init__(
        self,
        script: Script,
        target: str,
        identity: _Identity,
        store: ArtifactStore,
        folder: Path,
        name: str,
        on_turn: OnTurn | None,
    ) -> None:
        self._script = script
        self._target = target
        self._identity = identity
        self._name = name.strip() or default_name(script)
        self._on_turn = on_turn
        self._portable = Portable(script.cwd, script.report)
        self._schedule = Schedule(script.started or script.turns[0].at)
        now = self._schedule.now
        ids = SeededIds(identity.seed)
        live = TranscriptTransport(script, self._schedule, self._portable)
        transport = RecordingTransport(live, now)
        self._engine = ActivityEngine(workspace_id="import", now=now)
        self._host = Host.open(folder / "state.sqlite3", workspace_id="import", user_id="import", now=now, ids=ids)
        self._session = AgentSession(engine=self._engine, host=self._host, transport=transport, ids=ids, now=now)
        fresh = identity.fresh()
        self._recorder = SessionRecorder(
            session=self._session,
            host=self._host,
            transport=transport,
            store=store,
            ids=ids,
            now=now,
            new_id=lambda: next(fresh),
            settle=self._run,
        )

    def record(self) -> None:
        """Play everything and publish."""
        request = StartRequest(
            scope_id=SCOPE,
            agent_target_id=self._target,
            mode=CREATE_SESSION,
            replay_prerequisites=ReplayPrerequisites(composer_defaults=self._defaults()),
            name=self._name,
        )
        try:
            self._recorder.begin(request, self._identity.root)
            for number, turn in enumerate(self._script.turns):
                self._schedule.at(turn.at, lambda number=number, turn=turn: self._prompt(number, turn), PERSON)  # type: ignore[misc]
                if turn.outcome == "interrupted":
                    self._schedule.at(turn.ended, lambda number=number: self._cancel(number), PERSON)  # type: ignore[misc]
            self._run()
            self._recorder.complete()
        except BaseException:
            self._recorder.cancel()
            raise

    def close(self) -> None:
        """End the session and its database."""
        self._session.close()
        self._host.close()

    # ------------------------------------------------------------------ the clock

    def _run(self) -> None:
        """Let everything happen that is planned, and every deadline of the engine that falls between."""
        schedule = self._schedule
        while (due := schedule.next_time) is not None:
            expiry = self._engine.next_expiry()
            if expiry is not None and expiry < due:
                schedule.advance(expiry)
                self._session.expire()
            else:
                schedule.run_next()

    # ------------------------------------------------------------------ the person

    def _prompt(self, number: int, turn: Turn) -> None:
        if self._on_turn is not None:
            self._on_turn(number, len(self._script.turns))
        intent: JsonObject = {
            "agentSessionId": self._identity.root,
            "clientSubmitId": f"prompt-{number + 1}",
            "content": self._content(turn.prompt),
            "requestedAtUnixMs": self._schedule.now(),
        }
        if turn.display and turn.display != turn.text:
            intent["displayPrompt"] = self._portable.text(turn.display)
        if number == 0:
            self._session.dispatch({**intent, **self._new_session()})
        else:
            self._session.dispatch({"type": "submit/requested", "routing": "auto", **intent})
        for place, step in enumerate(turn.steps):
            if isinstance(step, Guide):
                at = min(max(step.at, turn.at + 1), turn.ended)
                self._schedule.at(at, lambda step=step, place=place: self._guide(number, place, step))  # type: ignore[misc]

    def _new_session(self) -> JsonObject:
        defaults = self._defaults()
        return {
            "type": "activation/requested",
            "mode": "new",
            "requestId": "activation-1",
            "agentTargetId": self._target,
            "cwd": PROJECT_FOLDER,
            "title": self._name,
            "settings": {
                "model": defaults.model,
                "permissionModeId": defaults.permission_mode_id,
                "reasoningEffort": defaults.reasoning_effort,
                "speed": defaults.speed,
            },
            "railPlacement": {"kind": "conversations", "sectionKey": "conversations"},
        }

    def _guide(self, number: int, place: int, step: Guide) -> None:
        if self._host.active_turn(self._identity.root) is None:
            self._script.report.count("folded", "prompt that came after its turn had ended")
            return
        intent = {
            "type": "submit/requested",
            "routing": "send_now",
            "agentSessionId": self._identity.root,
            "clientSubmitId": f"prompt-{number + 1}-guidance-{place + 1}",
            "content": self._content(step.content),
            "requestedAtUnixMs": self._schedule.now(),
        }
        self._session.dispatch(intent)

    def _cancel(self, number: int) -> None:
        active = self._host.active_turn(self._identity.root)
        if active is None:
            return
        command = f"cancel-{number + 1}"
        self._session.dispatch(
            {
                "type": "session/cancelRequested",
                "agentSessionId": self._identity.root,
                "commandId": command,
                "turnId": active.id,
            }
        )

    def _content(self, blocks: list[JsonObject]) -> list[JsonObject]:
        """Prompt blocks that a frame of the tape can hold. A prompt is never empty."""
        content: list[JsonObject] = []
        for block in blocks:
            if block.get("type") == "text":
                content.append({**block, "text": self._portable.text(str(block.get("text", "")), MAX_TEXT)})
            else:
                content.append(self._portable.object(block))
        return content or [{"type": "text", "text": "(empty prompt)"}]

    def _defaults(self) -> ComposerDefaults:
        script = self._script
        turns = script.turns
        effort = next((turn.effort for turn in turns if turn.effort), script.effort)
        return ComposerDefaults(
            model=script.model.strip() or next((turn.model.strip() for turn in turns if turn.model.strip()), "default"),
            permission_mode_id=script.permission.strip() or "auto",
            reasoning_effort=effort.strip() or "medium",
            speed="standard",
        )


def count_entities(state: ReplayState) -> int:
    """Sessions, Turns, messages and Interactions of a state."""
    sessions = state.agent.sessions
    inner = sum(len(one.turns or ()) + len(one.messages or ()) + len(one.interactions or ()) for one in sessions)
    return len(sessions) + inner
