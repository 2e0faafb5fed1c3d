"""What the timeline of a viewer shows before anything was played: duration, density, idle spans, checkpoint times."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cassettes.core.activity import ActivityEvent
from cassettes.core.checkpoints import CheckpointPlan

JsonObject = dict[str, Any]
BUCKETS = 200
_IDLE_MS = 2_000  # a longer gap without a frame or event is shown as idle
_MAX_IDLE_SPANS = 400
_PROMPT_CHARS = 160


class _FrameTime(msgspec.Struct, rename="camel"):
    """The members of a frame that tell when it happened; the payload is skipped."""

    connection_id: str
    chunk_seq: int
    elapsed_ms: int


class TapeIndex:
    """Times of one Cassette, read in one pass over the tape without decoding a payload.

    Playback time 0 is the first activity event. A connection begins, as far as the tape tells, at time 0.
    """

    def __init__(self, frames: Path, plan: CheckpointPlan, events: Sequence[ActivityEvent]) -> None:
        base = events[0].occurred_at_unix_ms if events else 0
        self.event_times = [float(event.occurred_at_unix_ms - base) for event in events]
        self.chunks: dict[str, int] = {}
        self.durations: dict[str, float] = {}
        wanted = {
            (one.connection_id, one.chunk_seq)
            for checkpoint in plan.checkpoints
            for one in checkpoint.cursor.provider_connections
        }
        self._chunk_times: dict[tuple[str, int], float] = {}
        times: list[float] = []
        decoder = msgspec.json.Decoder(_FrameTime)
        with frames.open("rb") as lines:
            for line in lines:
                frame = decoder.decode(line)
                elapsed = float(frame.elapsed_ms)
                times.append(elapsed)
                self.chunks[frame.connection_id] = frame.chunk_seq
                self.durations[frame.connection_id] = max(elapsed, self.durations.get(frame.connection_id, 0.0))
                if (frame.connection_id, frame.chunk_seq) in wanted:
                    self._chunk_times[(frame.connection_id, frame.chunk_seq)] = elapsed
        self.duration = max([0.0, *times[-1:], *self.durations.values(), *self.event_times])
        self.density = self._density(times)
        self.idle = self._idle(times)
        self.checkpoints = self._checkpoints(plan)
        self.prompts = [
            {"atMs": time, "text": text}
            for event, time in zip(events, self.event_times, strict=True)
            if (text := _prompt(event))
        ]

    def _density(self, times: list[float]) -> list[int]:
        counts = [0] * BUCKETS
        for time in times:
            counts[min(BUCKETS - 1, int(time / self.duration * BUCKETS)) if self.duration else 0] += 1
        return counts

    def _idle(self, times: list[float]) -> list[JsonObject]:
        spans = []
        moments = sorted({0.0, *times, *self.event_times})
        for left, right in itertools.pairwise(moments):
            if right - left > _IDLE_MS:
                spans.append({"fromMs": left, "toMs": right})
        longest = sorted(spans, key=lambda span: span["fromMs"] - span["toMs"])[:_MAX_IDLE_SPANS]
        return sorted(longest, key=lambda span: span["fromMs"])

    def _checkpoints(self, plan: CheckpointPlan) -> list[JsonObject]:
        result: list[JsonObject] = []
        at = 0.0
        for checkpoint in plan.checkpoints:
            sequence = checkpoint.cursor.activity_event_sequence
            moments = [self.event_times[sequence - 1]] if 0 < sequence <= len(self.event_times) else [0.0]
            for one in checkpoint.cursor.provider_connections:
                moments.append(self._chunk_times.get((one.connection_id, one.chunk_seq), 0.0))
            at = max(at, *moments)
            result.append(
                {
                    "index": checkpoint.index,
                    "id": checkpoint.id,
                    "kind": checkpoint.kind,
                    "tags": list(checkpoint.tags),
                    "atMs": at,
                }
            )
        return result


def _prompt(event: ActivityEvent) -> str:
    """The text of a prompt that this event brought in, shortened."""
    if event.kind == "effect" or event.type not in {
        "activation/requested",
        "submit/requested",
        "session.create",
        "session.send",
    }:
        return ""
    content = (event.payload or {}).get("content") or (event.payload or {}).get("initialContent")
    if isinstance(content, str):
        return content[:_PROMPT_CHARS]
    blocks = content if isinstance(content, list) else []
    text = " ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
    return text.strip()[:_PROMPT_CHARS]
