"""Verification of recorded effects against the commands of this run (replay-runtime §5)."""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.core.errors import Place, ReplayFailed
from cassettes.core.jsontext import compact
from cassettes.engine.contract import REPLAYABLE_EFFECTS, STABLE_FIELDS, is_engine_internal
from cassettes.engine.engine import Command, CommandResult
from cassettes.playback.rebase import Rebased

JsonObject = dict[str, Any]
_ABSENT = object()


class Observed(msgspec.Struct):
    """A command that the engine gave out, and how it ended."""

    command: Command
    result: CommandResult | None = None
    claimed: bool = False


class EffectVerifier:
    """Buffers commands and results, and claims one command for each recorded effect when the effect is due."""

    def __init__(self, session_ids: set[str]) -> None:
        self.verified = 0
        self._sessions = session_ids  # registered sessions; children are added when they appear
        self._by_id: dict[str, Observed] = {}
        self._open: list[Observed] = []
        self._bound: dict[str, str] = {}  # recorded correlation id -> command id of this run

    def add_session(self, session_id: str) -> None:
        """A child session belongs to this Cassette."""
        self._sessions.add(session_id)

    def on_command(self, command: Command) -> None:
        """Buffer a replayable command; commands that break the rules of §5 end the replay."""
        if command.type not in REPLAYABLE_EFFECTS or is_engine_internal(command):
            return
        if not command.command_id or command.command_id in self._by_id:
            raise ReplayFailed(
                f"command id {command.command_id!r} is empty or was used before", code="command_identity_invalid"
            )
        if command.agent_session_id and command.agent_session_id not in self._sessions:
            raise ReplayFailed(
                f"{command.type} speaks of a session that no Cassette owns",
                code="command_session_unregistered",
                found=command.agent_session_id,
            )
        observed = Observed(command)
        self._by_id[command.command_id] = observed
        self._open.append(observed)

    def on_command_result(self, command: Command, result: CommandResult) -> None:
        """Remember how a command ended."""
        observed = self._by_id.get(command.command_id)
        if observed is not None:
            observed.result = result

    def bind(self, correlation_id: str, command_id: str, event_sequence: int) -> None:
        """Remember which command id stands for a recorded correlation id."""
        known = self._bound.setdefault(correlation_id, command_id)
        if not correlation_id or known != command_id:
            raise ReplayFailed(
                "an intent needs a correlation id of its own",
                code="correlation_invalid",
                place=Place(file="activity-events.jsonl", line=event_sequence),
                found=correlation_id,
            )

    def verify(self, effect: Rebased) -> bool:
        """True: verified. False: not seen yet, or its command has no result yet. Raises on a different result."""
        observed = self._match(effect)
        if observed is None or observed.result is None:
            return False
        self._compare_result(effect, observed.result)
        observed.claimed = True
        self._open.remove(observed)
        self.verified += 1
        return True

    def explain(self, effect: Rebased) -> ReplayFailed:
        """Why an effect could not be verified: the nearest command and the first field that differs."""
        place = Place(file="activity-events.jsonl", line=effect.event.sequence)
        observed = self._match(effect)
        if observed is not None:
            return ReplayFailed(
                f"{effect.event.type} was given out but never came to an end", code="effect_unsettled", place=place
            )
        nearest = next((one for one in self._open if one.command.type == effect.event.type), None)
        if nearest is None:
            return ReplayFailed(
                f"the engine gave out no {effect.event.type}",
                code="effect_unmatched",
                place=place,
                expected=effect.event.type,
                found=", ".join(sorted({one.command.type for one in self._open})) or "no command",
            )
        for field in sorted(STABLE_FIELDS[effect.event.type]):
            recorded = effect.payload.get(field, _ABSENT)
            live = nearest.command.payload.get(field, _ABSENT)
            if _text(recorded) != _text(live):
                return ReplayFailed(
                    f"{effect.event.type} differs in {field}",
                    code="effect_mismatch",
                    place=Place(file=place.file, line=place.line, path=f"$.payload.{field}"),
                    expected=_text(recorded),
                    found=_text(live),
                )
        return ReplayFailed(
            f"{effect.event.type} belongs to another intent",
            code="effect_mismatch",
            place=place,
            expected=effect.correlation_id,
            found=nearest.command.correlation_id,
        )

    def _match(self, effect: Rebased) -> Observed | None:
        return next((one for one in self._open if self._matches(one.command, effect)), None)

    def _matches(self, command: Command, effect: Rebased) -> bool:
        if command.type != effect.event.type or command.agent_session_id != effect.session_id:
            return False
        if not self._correlated(command, effect):
            return False
        payload, recorded = command.payload, effect.payload
        fields = STABLE_FIELDS[effect.event.type]
        return all(_text(payload.get(one, _ABSENT)) == _text(recorded.get(one, _ABSENT)) for one in fields)

    def _correlated(self, command: Command, effect: Rebased) -> bool:
        if effect.correlation_id and command.correlation_id == effect.correlation_id:
            return True
        bound = self._bound.get(effect.event.correlation_id)
        if bound is not None and bound == command.command_id:
            return True
        if effect.event.type != "session/activate":
            return False
        submit = effect.payload.get("clientSubmitId")
        return isinstance(submit, str) and bool(submit) and command.payload.get("clientSubmitId") == submit

    def _compare_result(self, effect: Rebased, result: CommandResult) -> None:
        recorded = effect.payload
        pairs = (
            ("outcome", recorded.get("outcome"), result.outcome),
            ("errorCode", recorded.get("errorCode") or "", result.error_code),
            ("errorReason", recorded.get("errorReason") or "", result.error_reason),
        )
        for name, expected, found in pairs:
            if expected != found:
                raise ReplayFailed(
                    f"{effect.event.type} ended differently",
                    code="effect_result_mismatch",
                    place=Place("activity-events.jsonl", effect.event.sequence, f"$.payload.{name}"),
                    expected=expected,
                    found=f"{found} {result.error_message}".strip(),
                )


def _text(value: object) -> str:
    return "" if value is _ABSENT or value is None else compact(value)
