"""One Cassette being replayed: both timelines, the input barrier, checkpoints and the final comparison.

A Surface is a discrete-event simulation. Each item (a unit, a recorded frame, an activity event, a deadline of the
engine) has a due time in playback milliseconds. `step` does the earliest one; whoever calls it decides when. So real
time, fast-forward, pause and jump all make the same commits in the same order. Nothing waits inside: when no item
can ever come, the Surface fails at once and says what each lane waits for.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.core.checkpoints import Checkpoint
from cassettes.core.compare import compare_states
from cassettes.core.errors import Place, ReplayFailed, RepriseError
from cassettes.core.state import FULL
from cassettes.engine.engine import ActivityEngine
from cassettes.host.host import Host
from cassettes.playback.activity import ActivityLane
from cassettes.playback.barrier import InputBarrier
from cassettes.playback.checkpoints import CheckpointVerifier
from cassettes.playback.effects import EffectVerifier
from cassettes.playback.rebase import IdentityRebaser
from cassettes.playback.tape import ReplayTransport, TapeConnection
from cassettes.playback.watch import SurfaceObserver
from cassettes.session.ids import SeededIds
from cassettes.session.session import AgentSession

WORKSPACE_ID = "replay"
USER_ID = "viewer"


class Surface:
    """State of one replay. `phase` is loading, replaying, verifying, complete or failed (replay-runtime §9.6)."""

    def __init__(self, cassette: CassetteFolder, folder: Path, *, seed: str = "") -> None:
        self.cassette = cassette
        self.phase = "loading"
        self.failure: RepriseError | None = None
        self.time = 0.0  # playback time of the last item
        self.landed: list[tuple[int, float]] = []  # checkpoint index, playback time
        manifest = cassette.manifest
        self.plan = cassette.plan()
        self.expected = cassette.expected_state()
        self.initial = cassette.initial_state()
        self.events = cassette.events()
        self.base_ms = self.events[0].occurred_at_unix_ms if self.events else manifest.created_at_unix_ms
        self.replay_root = str(folder / "project")
        Path(self.replay_root).mkdir(parents=True, exist_ok=True)
        ids = SeededIds(f"{seed or 'replay'}:{manifest.id}")
        self.host = Host.open(
            folder / "state.sqlite3", workspace_id=WORKSPACE_ID, user_id=USER_ID, now=self.now, ids=ids
        )
        self.engine = ActivityEngine(workspace_id=WORKSPACE_ID, now=self.now)
        self.transport = ReplayTransport(cassette, home=str(folder / "home"), now=lambda: self.time)
        self.session = AgentSession(
            engine=self.engine, host=self.host, transport=self.transport, ids=ids, now=self.now, hold_units=True
        )
        self.effects = EffectVerifier({manifest.root_agent_session_id})
        self.barrier = InputBarrier()
        self.checkpoints = CheckpointVerifier(
            self.plan, self.host, manifest.root_agent_session_id, self.expected, self.replay_root
        )
        self.rebaser = IdentityRebaser(self.host, self.expected, self.initial)
        defaults = manifest.replay_prerequisites.composer_defaults if manifest.mode == "create-session" else None
        self.activity = ActivityLane(
            self.events,
            cassette_id=manifest.id,
            session=self.session,
            rebaser=self.rebaser,
            effects=self.effects,
            replay_root=self.replay_root,
            defaults=defaults,
            now=self.now,
        )
        self.session.observe(SurfaceObserver(self.effects, self.checkpoints))
        self._target: int | None = None
        self._change = 0  # counts what happened; a lane that waited looks again only after a change
        self._activity_looked = -1

    def now(self) -> int:
        """Epoch milliseconds of the session's own time: that of the recording."""
        return self.base_ms + int(self.time)

    @property
    def target(self) -> Checkpoint | None:
        """The checkpoint that the lanes are held at."""
        return None if self._target is None else self.plan.checkpoints[self._target]

    @property
    def finished(self) -> bool:
        return self.phase in {"complete", "failed"}

    def open(self) -> None:
        """Restore the initial state and take up the first checkpoint. A failure ends the Surface."""
        self._guard(self._open)

    def step(self, limit: float = math.inf) -> bool:
        """Do the next item that is due by `limit`. False: none is, or the Surface is finished."""
        return self._guard(lambda: self._step(limit))

    def run(self) -> None:
        """Replay to the end without waiting."""
        while self.step():
            pass

    def next_due(self) -> float | None:
        """Playback time of the next item; None when the Surface is finished."""
        if self.finished:
            return None
        if self._ready_connection() is not None or self.transport.can_match():
            return self.time
        due = self._earliest()
        return self.time if due is None else due[0]

    def close(self) -> None:
        """Let go of the store and the tape."""
        self.session.close()
        self.transport.close()
        self.host.close()

    def waiting_for(self) -> list[str]:
        """What each lane waits for, in words."""
        texts = self.transport.waiting_for()
        if not self.activity.done:
            event = self.activity.next_event
            reason = self.activity.waiting_for or ("its turn" if self._authorised() else f"checkpoint {self._target}")
            texts.append(f"activity event {event.sequence if event else 0} waits for {reason}")
        return texts

    # ------------------------------------------------------------------ one item

    def _guard(self, work: Any) -> bool:
        if self.finished:
            return False
        try:
            return bool(work())
        except RepriseError as failure:
            self.failure = failure
            self.phase = "failed"
            return True
        except RecursionError:
            self.failure = ReplayFailed("A value is nested too deeply to be replayed.", code="json_too_deep")
            self.phase = "failed"
            return True

    def _open(self) -> bool:
        if self.initial is not None:
            self.host.restore(self.initial, replay_root=self.replay_root)
            self.checkpoints.bindings.seed(self.initial)
            self.session.announce()
        self.phase = "replaying"
        self._aim(0)
        self._reconcile()
        return True

    def _step(self, limit: float) -> bool:
        connection_id = self._ready_connection()
        if connection_id is not None:
            self._handle_unit(connection_id)
            return True
        if self.transport.match():
            self._changed()
            return True
        while (earliest := self._earliest()) is not None:
            due, lane = earliest
            if due > limit:
                return False
            self.time = max(self.time, due)
            if isinstance(lane, TapeConnection):
                self.transport.release(lane)
                self._changed()
                return True
            if lane == "engine":
                self.session.expire()
                self._changed()
                return True
            if self.activity.advance():
                self.rebaser.check_turn_count()
                self._changed()
                self._reconcile()
                return True
            self._activity_looked = self._change
        return self._nothing_left()

    def _handle_unit(self, connection_id: str) -> None:
        unit = self.session.handle_next(connection_id)
        self.barrier.complete(unit)
        self._changed()
        self._reconcile()

    def _ready_connection(self) -> str | None:
        """A connection with a decoded unit that the barrier lets pass."""
        for connection_id, live in self.session.by_connection.items():
            unit = live.lane.peek()
            if unit is not None and self.barrier.allows(unit):
                return connection_id
        return None

    def _earliest(self) -> tuple[float, TapeConnection | str] | None:
        """The next timed item of all lanes: provider before activity when both are due at once."""
        best: tuple[float, TapeConnection | str] | None = None
        for connection in self.transport.open_connections():
            if len(self.session.by_connection[connection.connection_id].lane):
                continue  # stands at the barrier
            due = connection.due()
            if due is not None and (best is None or due < best[0]):
                best = (due, connection)
        expiry = self.engine.next_expiry()
        if self._all_played():
            return None  # deadlines that are still open in the engine change nothing recorded any more
        if expiry is not None and (best is None or expiry - self.base_ms < best[0]):
            best = (float(expiry - self.base_ms), "engine")
        due = self.activity.due()
        if due is not None and self._authorised() and self._activity_looked != self._change:
            due = max(due, self.time)
            if best is None or due < best[0]:
                best = (due, "activity")
        return best

    def _authorised(self) -> bool:
        target = self.target
        return target is None or self.activity.sequence < target.cursor.activity_event_sequence

    def _changed(self) -> None:
        self._change += 1

    # ------------------------------------------------------------------ checkpoints and the end

    def _aim(self, index: int) -> None:
        if index >= len(self.plan.checkpoints):
            self._target = None
            self.barrier.clear()
            return
        self._target = index
        self.barrier.install(self.plan.checkpoints[index].cursor.provider_connections)

    def _reconcile(self) -> None:
        """Land every checkpoint whose cursors, trigger and readiness hold now."""
        while (checkpoint := self.target) is not None and self._at_cursor(checkpoint):
            verified = self.checkpoints.verify(checkpoint, self.barrier.handled)
            if not (verified.trigger and verified.readiness):
                return
            self.landed.append((checkpoint.index, self.time))
            self._aim(checkpoint.index + 1)
            self._changed()

    def _at_cursor(self, checkpoint: Checkpoint) -> bool:
        sequence = checkpoint.cursor.activity_event_sequence
        if self.activity.sequence > sequence:
            raise ReplayFailed(
                f"the activity passed {checkpoint.id}",
                code="checkpoint_activity_overshot",
                place=Place(file="checkpoint-plan.json", path=f"$.checkpoints[{checkpoint.index}].cursor"),
                expected=f"event {sequence}",
                found=f"event {self.activity.sequence}",
            )
        return self.activity.sequence == sequence and not self.barrier.missing()

    def _nothing_left(self) -> bool:
        """No item can come any more: the end, or a failure that says what is missing."""
        self._reconcile()
        if self._all_played():
            self._verify()
            return True
        raise self._stall()

    def _all_played(self) -> bool:
        return self.target is None and self.activity.done and self.transport.drained()

    def _stall(self) -> ReplayFailed:
        failure = self.transport.missing_send()
        if failure is not None and (self.activity.done or not self._authorised()):
            return failure
        if not self.activity.done and self._authorised():
            stalled = self.activity.stalled()
            return failure if failure is not None and stalled.code == "effect_unsettled" else stalled
        checkpoint = self.target
        if checkpoint is None:
            return self.transport.incomplete()
        verified = self.checkpoints.verify(checkpoint, self.barrier.handled)
        lanes = [f"{name} at {pair[0]} of {pair[1]}" for name, pair in self.barrier.missing().items()]
        return ReplayFailed(
            f"{checkpoint.id} ({checkpoint.kind}) cannot be reached",
            code="checkpoint_readiness_timeout",
            place=Place(file="checkpoint-plan.json", path=f"$.checkpoints[{checkpoint.index}]"),
            expected=verified.missing or "the cursor of every lane",
            found="; ".join(lanes + self.waiting_for()) or "nothing more to come",
        )

    def _verify(self) -> None:
        """Completeness of the tape, then the canonical state against the expected one (replay-runtime §11.1)."""
        self.phase = "verifying"
        self.transport.verify_complete()
        root_id = self.cassette.manifest.root_agent_session_id
        if not self.host.is_settled(root_id):
            raise ReplayFailed("the session is still at work when its tape has ended", code="session_not_settled")
        actual = self.host.capture(root_id, replay_root=self.replay_root)
        mismatch = compare_states(self.expected, actual, FULL)
        if mismatch is not None:
            raise ReplayFailed(
                "the state at the end is not the expected one",
                code="agent_session_replay_transport_mismatch",
                place=Place(file="expected-state.json", path=mismatch.path),
                expected=mismatch.expected,
                found=mismatch.found,
            )
        self.phase = "complete"
