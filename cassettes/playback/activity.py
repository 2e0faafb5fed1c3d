"""The activity lane: walks the recorded events, each at its time and only when the state allows (replay-runtime §4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cassettes.core.activity import ActivityEvent
from cassettes.core.errors import Place, ReplayFailed
from cassettes.core.manifest import ComposerDefaults
from cassettes.playback.effects import EffectVerifier
from cassettes.playback.intents import localise, materialise
from cassettes.playback.rebase import IdentityRebaser, Rebased
from cassettes.session.session import AgentSession

JsonObject = dict[str, Any]
_SENDS = {"queue/sendPrompt", "session/activate"}


class ActivityLane:
    """Position in the activity timeline of one Cassette.

    `due` is playback time in milliseconds, 0 at the first event. `advance` acts on the next event when everything it
    needs holds, and else says in `waiting_for` what it waits for.
    """

    def __init__(
        self,
        events: Sequence[ActivityEvent],
        *,
        cassette_id: str,
        session: AgentSession,
        rebaser: IdentityRebaser,
        effects: EffectVerifier,
        replay_root: str,
        defaults: ComposerDefaults | None,
        now: Callable[[], int],
    ) -> None:
        self.sequence = 0  # events done
        self.total = len(events)
        self.waiting_for = ""
        self._events = events
        self._cassette_id = cassette_id
        self._session = session
        self._rebaser = rebaser
        self._effects = effects
        self._replay_root = replay_root
        self._defaults = defaults
        self._now = now
        self._stall: ReplayFailed | None = None
        self._awaits_send = {one.caused_by_event_id for one in events if one.kind == "effect" and one.type in _SENDS}
        intents = {one.correlation_id for one in events if one.kind == "intent" and one.correlation_id}
        for event in events:
            if event.kind == "direct-stimulus" and event.type == "session.send" and event.correlation_id in intents:
                raise ReplayFailed(
                    "a direct send has the correlation of an intent: it would be sent twice",
                    code="stimulus_duplicates_intent",
                    place=Place(file="activity-events.jsonl", line=event.sequence),
                )

    @property
    def done(self) -> bool:
        """Every event was acted on."""
        return self.sequence >= self.total

    @property
    def next_event(self) -> ActivityEvent | None:
        return None if self.done else self._events[self.sequence]

    def due(self) -> float | None:
        """Playback time of the next event."""
        event = self.next_event
        return None if event is None else float(event.occurred_at_unix_ms - self._events[0].occurred_at_unix_ms)

    def advance(self) -> bool:
        """Act on the next event. False when it has to wait."""
        event = self.next_event
        assert event is not None
        self._stall = None
        try:
            rebased = self._rebaser.rebase(event)
        except ReplayFailed as failure:
            if failure.code != "identity_unresolved":
                raise
            self._stall = failure  # what it names may still come
            return self._wait(f"an identity of event {event.sequence}")
        defaults = self._defaults
        rebased.payload = localise(event.type, rebased.payload, self._replay_root, defaults)
        acted = {"intent": self._intent, "effect": self._effect, "direct-stimulus": self._stimulus}[event.kind](rebased)
        if acted:
            self.sequence += 1
            self.waiting_for = ""
        return acted

    def stalled(self) -> ReplayFailed:
        """The failure to report when nothing can move any more."""
        event = self.next_event
        assert event is not None
        if self._stall is not None:
            return self._stall
        if event.kind == "effect":
            return self._effects.explain(self._rebaser.rebase(event))
        return ReplayFailed(
            f"{event.type} waits for {self.waiting_for or 'nothing that can come'}",
            code="activity_stalled",
            place=Place(file="activity-events.jsonl", line=event.sequence),
        )

    def _intent(self, event: Rebased) -> bool:
        if self._gated(event) and not self._session.engine.is_idle(event.session_id):
            return self._wait(f"the session to be idle before {event.event.type}")
        intent = materialise(event, self._cassette_id, self._now(), self._effects)
        if not self._session.engine.intent_ready(intent):
            return self._wait(f"the state in which {event.event.type} is allowed")
        self._session.dispatch(intent)
        return True

    def _gated(self, event: Rebased) -> bool:
        """Does the intent wait for canonical idle? (replay-runtime §4 step 4)"""
        kind, payload = event.event.type, event.payload
        if kind == "plan/feedbackRequested":
            return True
        if kind != "submit/requested" or payload.get("routing") in {"send_now", "immediate"}:
            return False
        diagnostics = payload.get("submitDiagnostics")
        queued = isinstance(diagnostics, dict) and diagnostics.get("queued") is True
        return not queued and event.event.event_id in self._awaits_send

    def _effect(self, event: Rebased) -> bool:
        return self._effects.verify(event) or self._wait(f"the end of {event.event.type}")

    def _stimulus(self, event: Rebased) -> bool:
        kind, payload = event.event.type, event.payload
        session = self._session
        if kind == "session.send" and payload.get("guidance") not in (True, "steer"):
            if not session.engine.is_idle(event.session_id):
                return self._wait("the session to be idle before session.send")
        elif kind == "turn.cancel":
            active = session.host.active_turn(event.session_id)
            if active is None or (payload.get("turnId") and active.id != payload["turnId"]):
                return self._wait("the Turn to cancel")
        elif kind == "interactive.response":
            pending = [
                one
                for one in session.host.interactions(event.session_id, pending_only=True)
                if one.request_id == payload.get("requestId")
            ]
            if not pending:
                return self._wait("the Interaction to answer")
            payload["turnId"] = pending[0].turn_id
        session.stimulate(kind, event.session_id, payload, event.correlation_id)
        return True

    def _wait(self, what: str) -> bool:
        self.waiting_for = what
        return False
