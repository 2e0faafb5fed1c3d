"""A Surface as somebody watches it: paced by the playback clock, steered by controls, told as events.

The caller (a worker) owns the wall clock: it calls `advance` with the wall time and sleeps `next_wake` seconds. The
members of the events are those of the viewing protocol (docs of the worker).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.core.errors import InputRejected
from cassettes.playback.clock import PlaybackClock
from cassettes.playback.feed import Feed
from cassettes.playback.index import TapeIndex
from cassettes.playback.report import verification_event
from cassettes.playback.surface import Surface

JsonObject = dict[str, Any]
_STEPS_A_CALL = 400  # so that a fast-forward still hears controls and shows progress
_PLAYBACK_EVERY_MS = 250.0


class Presentation:
    """One viewing generation of one Cassette."""

    def __init__(self, cassette_path: Path, folder: Path, start: JsonObject) -> None:
        self.cassette = CassetteFolder(cassette_path)
        self.surface = Surface(self.cassette, folder)
        self.clock = PlaybackClock()
        self.idle_limit: float | None = None
        self.mode = "automatic"
        self.skipped = 0.0
        self._feed = Feed()
        self.surface.session.observe(self._feed)
        self._index = TapeIndex(cassette_path / "provider" / "frames.jsonl", self.surface.plan, self.surface.events)
        self._seek_time: float | None = None
        self._seek_checkpoint: int | None = None
        self._seek_moment: int | None = None
        self._moments = 0  # steps so far that changed something a viewer sees
        self._landed = 0
        self._opened = False
        self._told_end = False
        self._told_playback: JsonObject = {}
        self._told_at = -math.inf
        self._start(start)

    @property
    def finished(self) -> bool:
        """Nothing more will happen by itself."""
        return self.surface.finished and self._told_end

    def control(self, message: JsonObject) -> None:
        """A control of the viewer. `control_invalid` when it cannot be understood; nothing changes then."""
        command = message.get("command")
        if command == "play":
            self.clock.paused = False
        elif command == "pause":
            self._stop_seeking()
            self.clock.paused = True
        elif command == "speed":
            self.clock.set_speed(_number(message, "value"))
        elif command == "idle-limit":
            limit = message.get("ms")
            self.idle_limit = None if limit is None else max(0.0, _number(message, "ms"))
        elif command == "mode":
            self.mode = _one_of(message, "value", ("automatic", "manual"))
        elif command == "next-checkpoint":
            self._seek_to_checkpoint(min(self._landed, len(self.surface.plan.checkpoints) - 1))
        elif command == "seek":
            self._seek(message)
        elif command == "step":
            self._step_on()
        else:
            raise InputRejected(f"{command!r} is no control", code="control_invalid")

    def rewind(self, message: JsonObject) -> JsonObject | None:
        """How a new generation has to start when the control leads back; None when it does not.

        Playback is monotonic: what lies behind is reached by a new worker that fast-forwards (replay-runtime §9.7).
        """
        command = message.get("command")
        target: JsonObject = {}
        if command == "seek" and "checkpoint" in message:
            index = int(_number(message, "checkpoint"))
            back = 0 <= index < self._landed_count()
            target = {"checkpoint": index}
        elif command == "seek":
            to = max(0.0, _number(message, "atMs"))
            back = to < self._playback_event()["elapsedMs"]
            target = {"atMs": to}
        elif command == "step":
            back = _one_of(message, "to", ("next", "previous")) == "previous"
            target = {"moment": max(0, self._moments - 1)}
        else:
            back = command == "restart"
        if not back:
            return None
        paused = command == "step" or (self.clock.paused and command != "restart" and not self.surface.finished)
        settings = {"speed": self.clock.speed, "idleLimitMs": self.idle_limit, "mode": self.mode}
        return {**settings, **target, "paused": paused}

    def advance(self, wall_ms: float) -> list[JsonObject]:
        """Do everything that is due, and return what a viewer has to hear."""
        self.clock.tick(wall_ms)
        events: list[JsonObject] = []
        if not self._opened:
            self._opened = True
            self.surface.open()
            events.append(self._opened_event())
        for _ in range(_STEPS_A_CALL):
            if not self._one_step():
                break
        events += self._feed.take()
        events += [self._queue_event(session) for session in sorted(self._feed.take_queues())]
        events += self._checkpoint_events()
        if self.surface.finished and not self._told_end:
            self._told_end = True
            self._stop_seeking()
            events.append(verification_event(self.surface))
            if self.surface.failure is not None:
                events.append({"type": "failed", "error": self.surface.failure.as_dict()})
        playback = self._playback_event()
        due = playback["paused"] or wall_ms - self._told_at >= _PLAYBACK_EVERY_MS
        if _state(playback) != _state(self._told_playback) or (due and playback != self._told_playback):
            self._told_playback = playback
            self._told_at = wall_ms
            events.append(playback)
        return events

    def next_wake(self, wall_ms: float) -> float | None:
        """Seconds until `advance` wants to be called; None: only after a control."""
        if not self._opened:
            return 0.0
        if self.surface.finished:
            return None if self._told_end else 0.0
        if self._seeking:
            return 0.0
        if self.clock.paused:
            return None
        due = self.surface.next_due()
        if due is None:
            return 0.0
        self.clock.tick(wall_ms)
        return min(self.clock.wall_until(self._skip_idle(due)), _PLAYBACK_EVERY_MS) / 1000

    def close(self) -> None:
        self.surface.close()

    # ------------------------------------------------------------------ pacing

    @property
    def _seeking(self) -> bool:
        return (self._seek_time, self._seek_checkpoint, self._seek_moment) != (None, None, None)

    def _one_step(self) -> bool:
        """One item of the Surface, if playback has come to it."""
        surface = self.surface
        if surface.finished:
            return False
        if self._seek_moment is not None:
            moved = self._moments < self._seek_moment and self._step()
            if not moved or self._moments >= self._seek_moment:
                self._stop_seeking()
                self.clock.jump(surface.time)
            return moved
        if self._seek_checkpoint is not None:
            moved = self._step()
            if self._landed_count() > self._seek_checkpoint:
                self._stop_seeking()
                self.clock.jump(surface.time)
            return moved
        if self._seek_time is not None:
            if self._step(self._seek_time):
                return True
            self.clock.jump(self._seek_time)
            self._stop_seeking()
            return False
        if self.clock.paused:
            return False
        if not self.clock.speed:
            moved = self._step()
            self.clock.jump(surface.time)
        else:
            due = surface.next_due()
            if due is not None:
                self._skip_idle(due)
            moved = self._step(self.clock.elapsed)
        if moved and self.mode == "manual" and self._landed_count() > self._landed:
            self.clock.paused = True
        return moved

    def _step(self, until: float = math.inf) -> bool:
        before = self._feed.commits
        moved = self.surface.step(until)
        self._moments += self._feed.commits > before
        return moved

    def _skip_idle(self, due: float) -> float:
        """Jump over the part of a wait that is longer than the idle limit."""
        if self.idle_limit is not None and due - self.clock.elapsed > self.idle_limit:
            to = due - self.idle_limit
            self.skipped += to - self.clock.elapsed
            self.clock.jump(to)
        return due

    def _landed_count(self) -> int:
        return len(self.surface.landed)

    def _stop_seeking(self) -> None:
        self._seek_time = None
        self._seek_checkpoint = None
        self._seek_moment = None

    def _seek(self, message: JsonObject) -> None:
        if "checkpoint" in message:
            index = int(_number(message, "checkpoint"))
            if not 0 <= index < len(self.surface.plan.checkpoints):
                raise InputRejected(f"there is no checkpoint {index}", code="control_invalid")
            self._seek_to_checkpoint(index)
        else:
            to = _number(message, "atMs")
            if to > self.clock.elapsed:
                self._stop_seeking()
                self._seek_time = to

    def _step_on(self) -> None:
        """To the next moment that changes something a viewer sees, and stay there."""
        if not self.surface.finished:
            self._stop_seeking()
            self._seek_moment = self._moments + 1
            self.clock.paused = True

    def _seek_to_checkpoint(self, index: int) -> None:
        """Fast-forward to a checkpoint and stay there. One that was passed is no move: backward is a new worker."""
        if index >= self._landed_count():
            self._stop_seeking()
            self._seek_checkpoint = index
            self.clock.paused = True

    def _start(self, start: JsonObject) -> None:
        if "speed" in start:
            self.clock.set_speed(_number(start, "speed"))
        if start.get("idleLimitMs") is not None:
            self.idle_limit = max(0.0, _number(start, "idleLimitMs"))
        if "mode" in start:
            self.mode = _one_of(start, "mode", ("automatic", "manual"))
        if start.get("checkpoint") is not None or start.get("atMs") is not None:
            self._seek({key: start[key] for key in ("checkpoint", "atMs") if start.get(key) is not None})
        if start.get("moment") is not None:
            self._seek_moment = int(_number(start, "moment"))
        # Who asks for a checkpoint stays there.
        self.clock.paused = bool(start.get("paused")) or self._seek_checkpoint is not None

    # ------------------------------------------------------------------ events

    def _opened_event(self) -> JsonObject:
        manifest = self.cassette.manifest
        tape = self.cassette.tape_manifest()
        index = self._index
        return {
            "type": "opened",
            "cassette": {
                "id": manifest.id,
                "name": manifest.name,
                "provider": tape.connections[0].provider if tape.connections else "",
                "agentTargetId": manifest.agent_target_id,
                "mode": manifest.mode,
                "rootSessionId": manifest.root_agent_session_id,
                "createdAtUnixMs": manifest.created_at_unix_ms,
                "startedAtUnixMs": self.surface.base_ms,
            },
            "durationMs": index.duration,
            "activityTotal": self.surface.activity.total,
            "checkpoints": index.checkpoints,
            "connections": [
                {
                    "connectionId": one.connection_id,
                    "provider": one.provider,
                    "totalChunks": index.chunks.get(one.connection_id, 0),
                    "durationMs": index.durations.get(one.connection_id, 0.0),
                }
                for one in tape.connections
            ],
            "outline": {"prompts": index.prompts, "density": index.density, "idle": index.idle},
        }

    def _checkpoint_events(self) -> list[JsonObject]:
        fresh = self.surface.landed[self._landed :]
        self._landed = len(self.surface.landed)
        plan = self.surface.plan.checkpoints
        return [{"type": "checkpoint", "index": index, "kind": plan[index].kind, "atMs": at} for index, at in fresh]

    def _queue_event(self, session_id: str) -> JsonObject:
        return {"type": "queue", "sessionId": session_id, **self.surface.engine.queue_view(session_id)}

    def _playback_event(self) -> JsonObject:
        surface, clock = self.surface, self.clock
        elapsed = min(clock.elapsed, self._index.duration)
        if self._seeking:
            elapsed = max(elapsed, surface.time)
        if surface.phase == "complete":
            elapsed = self._index.duration
        return {
            "type": "playback",
            "phase": surface.phase,
            "paused": clock.paused,
            "speed": clock.speed,
            "elapsedMs": elapsed,
            "durationMs": self._index.duration,
            "timing": "fast-forward" if self._seeking else "realtime",
            "mode": self.mode,
            "idleLimitMs": self.idle_limit,
            "skippedMs": self.skipped,
            "currentCheckpoint": surface.landed[-1][0] if surface.landed else None,
            "targetCheckpoint": surface.target.index if surface.target is not None else None,
            "activity": {"sequence": surface.activity.sequence, "total": surface.activity.total},
            "connections": [
                {
                    "connectionId": name,
                    "chunkSeq": position[0],
                    "unitIndex": position[1],
                    "totalChunks": self._index.chunks.get(name, 0),
                }
                for name, position in sorted(surface.barrier.handled.items())
            ],
            "waitingFor": [] if surface.finished else surface.waiting_for(),
        }


def _state(playback: JsonObject) -> JsonObject:
    """The part of a playback event whose change is told at once."""
    steady = ("phase", "paused", "speed", "timing", "mode", "idleLimitMs", "currentCheckpoint")
    return {name: playback.get(name) for name in steady}


def _number(message: JsonObject, name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputRejected(f"{name} is no number", code="control_invalid")
    return float(value)


def _one_of(message: JsonObject, name: str, allowed: tuple[str, ...]) -> str:
    value = message.get(name)
    if value not in allowed:
        raise InputRejected(f"{name} must be one of {', '.join(allowed)}", code="control_invalid")
    return str(value)
