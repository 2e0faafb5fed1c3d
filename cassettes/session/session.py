"""One agent session graph over any transport: engine + host + provider adapter, wired together.

Recording and playback both stand on this, so there is one way a session runs. Nothing here blocks, waits or reads a
clock: intents come in by `dispatch`, provider bytes by the receiver that a transport was given, and everything that
follows happens before the call returns. Work that a step causes is queued, so steps never nest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from cassettes.core.errors import RepriseError
from cassettes.engine.engine import ActivityEngine, Command, CommandResult
from cassettes.host.host import Host
from cassettes.host.model import Commit, InteractionRow, MessageRow, Mutation, SessionRow, TurnRow
from cassettes.providers import registry
from cassettes.providers.ports import Adapter, Codec, Emit, Fail, IdSource, LaunchContext, Send, Settle, Step
from cassettes.session.commands import CommandRunner
from cassettes.session.lane import InputLane, ProtocolBroken
from cassettes.session.ports import Chunk, Connection, Launch, SessionObserver, Transport, Unit, UnitEvent

JsonObject = dict[str, Any]
OnSettled = Callable[[Settle], None]


class Live:
    """One open provider connection of a root session."""

    def __init__(self, root_id: str, connection: Connection, adapter: Adapter, codec: Codec, lane: InputLane) -> None:
        self.root_id = root_id
        self.connection = connection
        self.adapter = adapter
        self.codec = codec
        self.lane = lane
        self.ready = False
        self.closed = False
        self.when_ready: list[Callable[[Settle], None]] = []


class AgentSession:
    """The sessions of one workspace.

    `hold_units` leaves decoded units in their lanes until `handle_next` is called; a replay uses it to stop between
    two units (input barrier). Otherwise each unit is handled as soon as it is complete.
    """

    def __init__(
        self,
        *,
        engine: ActivityEngine,
        host: Host,
        transport: Transport,
        ids: IdSource,
        now: Callable[[], int],
        hold_units: bool = False,
    ) -> None:
        self.engine = engine
        self.host = host
        self.ids = ids
        self.now = now
        self.lives: dict[str, Live] = {}  # by root session id
        self.by_connection: dict[str, Live] = {}
        self._transport = transport
        self._hold_units = hold_units
        self._observers: list[SessionObserver] = []
        self._settled: dict[str, OnSettled] = {}
        self._work: deque[Callable[[], None]] = deque()
        self._draining = False
        self._runner = CommandRunner(self)

    # ------------------------------------------------------------------ what comes in

    def observe(self, observer: SessionObserver) -> None:
        """Let `observer` watch the engine, every commit and every unit."""
        self._observers.append(observer)
        self.engine.observers.append(observer)

    def dispatch(self, intent: JsonObject) -> None:
        """An intent of the person, or of a recording that stands for the person."""
        self.later(lambda: self._run(self.engine.dispatch(intent)))

    def stimulate(self, kind: str, session_id: str, payload: JsonObject, correlation_id: str) -> None:
        """A direct stimulus: a request that bypassed the engine (replay-runtime §6)."""
        self.later(lambda: self._runner.stimulus(kind, session_id, payload, correlation_id))

    def expire(self) -> None:
        """Let every deadline of the engine that is due take effect."""
        self.later(lambda: self._run(self.engine.expire()))

    def handle_next(self, connection_id: str) -> Unit:
        """Handle the next waiting unit of a connection."""
        live = self.by_connection[connection_id]
        unit = live.lane.pop()
        self.later(lambda: self._handle(live, unit))
        return unit

    def later(self, work: Callable[[], None]) -> None:
        """Do `work` after everything that is going on; at once when nothing is."""
        self._work.append(work)
        if self._draining:
            return
        self._draining = True
        try:
            while self._work:
                self._work.popleft()()
        finally:
            self._work.clear()
            self._draining = False

    # ------------------------------------------------------------------ what command runners use

    def live_of(self, session_id: str) -> Live | None:
        """The open connection that serves a session."""
        row = self.host.session(session_id)
        live = self.lives.get(row.root_id) if row is not None else None
        return live if live is not None and not live.closed else None

    def with_connection(self, session: SessionRow, ready: OnSettled) -> None:
        """Call `ready` once the session's provider takes prompts; opens (resumes) a connection where none is open."""
        live = self.live_of(session.id)
        if live is None:
            live = self._open(session)
        if live.ready:
            ready(Settle(token=""))
        else:
            live.when_ready.append(ready)

    def ask(self, live: Live, token: str, settled: OnSettled, request: Callable[[Adapter, str], list[Step]]) -> None:
        """Give the adapter a command; `settled` hears of its end exactly once."""
        self._settled[token] = settled
        self._carry_out(live, request(live.adapter, token), cause="activity")

    def settle(self, command: Command, result: CommandResult) -> None:
        """Tell the engine that a command is done."""
        self.later(lambda: self._run(self.engine.settle(command.command_id, result)))

    def committed(self, commit: Commit) -> None:
        """Tell everybody of a commit: observers first, then the engine as canonical observations."""
        if not commit.mutations:
            return
        for observer in self._observers:
            observer.on_commit(commit)
        for mutation in commit.mutations:
            intent = _observation_intent(mutation)
            if intent is not None:
                self._run(self.engine.dispatch(intent))

    def announce(self) -> None:
        """Tell the engine of everything that the host holds already (after a restore)."""
        for session in self.host.sessions():
            rows: list[SessionRow | TurnRow | InteractionRow] = [session, *self.host.turns(session.id)]
            rows += self.host.interactions(session.id)
            for row in rows:
                mutation = Mutation(entity="session", key=(), change="insert", value=row)
                intent = _observation_intent(mutation)
                if intent is not None:
                    self.dispatch(intent)

    def close(self) -> None:
        """Close every connection. The host stays open for reading."""
        for live in self.lives.values():
            if not live.closed:
                live.closed = True
                live.connection.close()

    # ------------------------------------------------------------------ connections

    def _open(self, session: SessionRow) -> Live:
        """Launch the provider of a root session, and start its adapter."""
        root = self.host.session(session.root_id) or session
        provider = registry.resolve(root.agent_target_id, root.provider)
        adapter = registry.new_adapter(provider.id, self.ids)
        codec = registry.codec(provider.id)
        launch = Launch(session_id=root.id, root_session_id=root.root_id, provider=provider.id, cwd=root.cwd)
        live: Live | None = None

        def receive(chunk: Chunk) -> None:
            assert live is not None
            self._receive(live, chunk)

        connection = self._transport.launch(launch, receive)
        lane = InputLane(connection.connection_id, codec)
        live = Live(root.id, connection, adapter, codec, lane)
        self.lives[root.id] = live
        self.by_connection[connection.connection_id] = live
        context = LaunchContext(
            connection_id=connection.connection_id,
            session_id=root.id,
            provider_session_id=root.provider_session_id,
            resume_checkpoint=root.provider_resume_checkpoint,
            attached=connection.capture_origin == "attached-live-connection",
            cwd=root.cwd,
            settings=dict(root.settings),
            restored=bool(root.provider_session_id),
            protocol_version=connection.protocol_version,
        )
        opened = live

        def started(settled: Settle) -> None:
            opened.ready = settled.outcome == "succeeded"
            waiting, opened.when_ready = opened.when_ready, []
            for callback in waiting:
                callback(settled)

        token = f"start:{connection.connection_id}"
        self.later(lambda: self.ask(opened, token, started, lambda one, name: one.start(context, name)))
        return live

    def _receive(self, live: Live, chunk: Chunk) -> None:
        live.lane.push(chunk)
        if self._hold_units:
            return
        while len(live.lane):
            unit = live.lane.pop()
            self.later(lambda unit=unit: self._handle(live, unit))  # type: ignore[misc]

    def _handle(self, live: Live, unit: Unit) -> None:
        if unit.kind == "process-exit":
            live.closed = True
            steps = live.adapter.exited(unit.exit_code or 0, unit.text)
        else:
            assert unit.message is not None
            steps = live.adapter.receive(unit.message)
        self._carry_out(live, steps, cause="provider", unit=unit)

    def _carry_out(self, live: Live, steps: Sequence[Step], *, cause: str, unit: Unit | None = None) -> None:
        """Do what an adapter wants: one commit for all its events, then the sends, then the settled commands."""
        events = [step.event for step in steps if isinstance(step, Emit)]
        if unit is not None:
            ref = f"{unit.connection_id}:{unit.chunk_seq}:{unit.unit_index}"
            commit = self.host.apply(events, cause_ref=ref)
            self.committed(commit)
            numbered = [UnitEvent(number, event) for number, event in enumerate(events, 1)]
            for observer in self._observers:
                observer.on_unit(unit, numbered, commit)
        elif events:
            self.committed(self.host.apply(events, cause_ref=cause))
        for step in steps:
            if isinstance(step, Send):
                live.connection.send(live.codec.encode(step.message))
            elif isinstance(step, Fail):
                raise ProtocolBroken(step.message, code=step.code)
            elif isinstance(step, Settle):
                callback = self._settled.pop(step.token, None)
                if callback is None:
                    raise RepriseError(f"the adapter settled {step.token!r} twice", code="adapter_settled_twice")
                callback(step)

    def _run(self, commands: Sequence[Command]) -> None:
        for command in commands:
            self.later(lambda command=command: self._runner.run(command))  # type: ignore[misc]


def _observation_intent(mutation: Mutation) -> JsonObject | None:
    """The canonical observation that the engine hears of, as far as it looks at it; None where it does not care."""
    value = mutation.value
    if isinstance(value, SessionRow):
        told: JsonObject = {"id": value.id, "activeTurnId": value.active_turn_id, "settings": value.settings}
        return {"type": "session/upserted", "session": told}
    if isinstance(value, TurnRow):
        told = {"id": value.id, "phase": value.phase, "outcome": value.outcome}
        return {"type": "turn/upserted", "agentSessionId": value.session_id, "turn": told}
    if isinstance(value, InteractionRow):
        told = {"turnId": value.turn_id, "requestId": value.request_id, "status": value.status}
        return {"type": "interaction/upserted", "agentSessionId": value.session_id, "interaction": told}
    if isinstance(value, MessageRow) and mutation.change == "insert" and _engine_cares(value):
        row = {"id": value.id, "turnId": value.turn_id, "kind": value.kind, "role": value.role}
        return {
            "type": "message/snapshotReceived",
            "agentSessionId": value.session_id,
            "message": {**row, "status": value.status, "payload": value.payload},
        }
    return None


def _engine_cares(message: MessageRow) -> bool:
    payload = message.payload
    return bool(payload.get("clientSubmitId")) or payload.get("kind") == "agent_system_notice"
