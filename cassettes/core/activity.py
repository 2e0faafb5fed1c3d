"""The activity timeline: what the person did and what it caused (cassette-v7 §7)."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any, ClassVar

import msgspec

from cassettes.core import jsontext
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.manifest import SCHEMA_VERSION, check_scope
from cassettes.core.policy import MAX_LINE_BYTES, POLICY
from cassettes.core.records import Value, compact_bytes, present, read_record

ACTIVITY_FILE = POLICY.files.activity_events.path
CWD_TOKEN = "${REPLAY_CWD}"
STARTS_SESSION = frozenset({"activation/requested", "session/activate", "session.create"})
OUTCOMES = frozenset({"succeeded", "failed", "timedOut"})
JsonObject = dict[str, Any]


class IntentContract(msgspec.Struct, frozen=True, rename="camel"):
    """What one intent may and must cause."""

    effects: frozenset[str]
    effect_required: bool


class ActivityContract(msgspec.Struct, frozen=True, rename="camel"):
    """Allowed effects of every replayable intent (cassette-v7 §7.2)."""

    schema_version: int
    intents: dict[str, IntentContract]

    def intent(self, name: str) -> IntentContract | None:
        return self.intents.get(name.strip())


CONTRACT = msgspec.json.decode(
    resources.files(__package__).joinpath("activity-contract.json").read_bytes(), type=ActivityContract
)


class ActivityEvent(Value, frozen=True):
    """One event, members in the order of the spec."""

    omit_empty: ClassVar[frozenset[str]] = frozenset({"correlationId", "causedByEventId", "agentSessionId", "payload"})
    schema_version: int = 0
    sequence: int = 0
    kind: str = ""
    type: str = ""
    event_id: str = ""
    correlation_id: str = ""
    caused_by_event_id: str = ""
    agent_session_id: str = ""
    payload: dict[str, Any] | None = None
    occurred_at_unix_ms: int = 0


def encode_line(event: ActivityEvent) -> bytes:
    """One line of `activity-events.jsonl`, newline included; the payload's members sorted."""
    payload = jsontext.sorted_map(jsontext.through_double(event.payload)) if event.payload else None
    return compact_bytes(msgspec.structs.replace(event, payload=payload)) + b"\n"


def decode_line(line: bytes, number: int) -> ActivityEvent:
    """One line as an event. `number` is its 1-based line number."""
    text = line.rstrip(b"\r\n")
    place = Place(ACTIVITY_FILE, number)
    if not text.strip():
        raise CassetteRejected("the line is blank", code="activity_line_blank", place=place)
    if len(text) > MAX_LINE_BYTES:
        raise CassetteRejected("the line is too long", code="activity_line_too_long", place=place)
    value = jsontext.decode_strict(text, file=ACTIVITY_FILE, line=number)
    check_scope(value, file=ACTIVITY_FILE, line=number)
    return read_record(ActivityEvent, value, file=ACTIVITY_FILE, line=number)


class Timeline:
    """Checks events one after another: while recording and when reading a whole file."""

    def __init__(self) -> None:
        self._events: list[ActivityEvent] = []
        self._by_id: dict[str, ActivityEvent] = {}
        self._causes: set[str] = set()

    @property
    def events(self) -> list[ActivityEvent]:
        return self._events

    @property
    def sequence(self) -> int:
        """Sequence of the last accepted event."""
        return len(self._events)

    def find(self, event_id: str) -> ActivityEvent | None:
        """The accepted event with this id."""
        return self._by_id.get(event_id.strip())

    def accept(self, event: ActivityEvent) -> None:
        """Rules 1–11 of §7.3, in order; the event is refused whole or accepted."""
        cause = self._check(event)
        self._events.append(event)
        self._by_id[event.event_id.strip()] = event
        if cause is not None:
            self._causes.add(cause.event_id.strip())

    def unresolved(self) -> list[ActivityEvent]:
        """Intents whose contract requires an effect that has not come."""
        return [one for one in self._events if _requires_effect(one) and one.event_id.strip() not in self._causes]

    def require_complete(self) -> None:
        """Every intent that must have an effect has one."""
        for event in self.unresolved():
            raise _rejected(
                event, "activity_timeline_incomplete", "eventId", f"{event.type} has no effect", expected="an effect"
            )

    def _check(self, event: ActivityEvent) -> ActivityEvent | None:
        if event.schema_version != SCHEMA_VERSION:
            raise _rejected(
                event,
                "activity_schema_version",
                "schemaVersion",
                "another schema",
                SCHEMA_VERSION,
                event.schema_version,
            )
        if event.sequence == 0:
            raise _rejected(event, "activity_event_invalid", "sequence", "the sequence is missing")
        for name, value in (("type", event.type), ("eventId", event.event_id)):
            if not present(value):
                raise _rejected(event, "activity_event_invalid", name, f"{name} is missing")
        if event.occurred_at_unix_ms <= 0:
            raise _rejected(event, "activity_event_invalid", "occurredAtUnixMs", "the time is missing")
        self._check_kind(event)
        expected = len(self._events) + 1
        if event.sequence != expected:
            raise _rejected(
                event, "activity_sequence_gap", "sequence", "the sequence has a gap", expected, event.sequence
            )
        if event.event_id.strip() in self._by_id:
            raise _rejected(event, "activity_event_repeated", "eventId", "the event id was used before")
        return self._check_cause(event) if event.kind == "effect" else None

    def _check_kind(self, event: ActivityEvent) -> None:
        if event.kind in {"intent", "direct-stimulus"}:
            if present(event.caused_by_event_id):
                raise _rejected(event, "activity_cause_forbidden", "causedByEventId", f"a {event.kind} has no cause")
            if event.kind == "intent" and CONTRACT.intent(event.type) is None:
                raise _rejected(event, "activity_intent_unknown", "type", f"intent {event.type!r} is unknown")
        elif event.kind == "effect":
            if not present(event.caused_by_event_id):
                raise _rejected(event, "activity_cause_missing", "causedByEventId", "an effect needs its cause")
        else:
            raise _rejected(event, "activity_kind_unknown", "kind", f"kind {event.kind!r} is unknown")

    def _check_cause(self, event: ActivityEvent) -> ActivityEvent:
        cause = self._by_id.get(event.caused_by_event_id.strip())
        if cause is None or cause.kind != "intent":
            raise _rejected(event, "activity_cause_invalid", "causedByEventId", "the cause is no earlier intent")
        contract = CONTRACT.intent(cause.type)
        if contract is None or event.type.strip() not in contract.effects:
            raise _rejected(event, "activity_effect_not_allowed", "type", f"{cause.type} must not cause {event.type}")
        both = event.correlation_id and cause.correlation_id
        if both and event.correlation_id != cause.correlation_id:
            raise _rejected(
                event,
                "activity_correlation_differs",
                "correlationId",
                "effect and cause are correlated differently",
                cause.correlation_id,
                event.correlation_id,
            )
        return cause


def check_timeline(events: Iterable[ActivityEvent]) -> Timeline:
    """Structure of a whole timeline (§7.3, without completeness)."""
    timeline = Timeline()
    for event in events:
        timeline.accept(event)
    return timeline


def check_playable(events: list[ActivityEvent]) -> None:
    """What launch adds (§7.3, H6, H12): not empty, times never decrease, every effect has an outcome."""
    if not events:
        raise CassetteRejected(
            "the activity timeline is empty", code="activity_timeline_empty", place=Place(ACTIVITY_FILE)
        )
    last = 0
    for event in events:
        if event.occurred_at_unix_ms < last:
            raise _rejected(
                event, "activity_time_decreases", "occurredAtUnixMs", "the time goes back", f"at least {last}",
                event.occurred_at_unix_ms,
            )  # fmt: skip
        last = event.occurred_at_unix_ms
        outcome = (event.payload or {}).get("outcome")
        if event.kind == "effect" and (not isinstance(outcome, str) or outcome not in OUTCOMES):
            raise _rejected(event, "activity_effect_outcome", "payload.outcome", "the effect has no known outcome")


def check_portable(event: ActivityEvent) -> None:
    """No absolute folder in the structural members of an event that starts a session (§7.6, H5)."""
    payload = event.payload or {}
    if event.type.strip() not in STARTS_SESSION:
        return
    rail = payload.get("railPlacement")
    placed = rail if isinstance(rail, dict) else {}
    _check_path(event, "payload.cwd", payload.get("cwd"))
    _check_path(event, "payload.railPlacement.projectPath", placed.get("projectPath"))
    for member, key in (
        ("payload.railPlacement.sectionKey", placed.get("sectionKey")),
        ("payload.railSectionKey", payload.get("railSectionKey")),
    ):
        if isinstance(key, str) and key.startswith("project:"):
            _check_path(event, member, key[len("project:") :])


def _check_path(event: ActivityEvent, member: str, value: object) -> None:
    if not isinstance(value, str) or not present(value):
        return
    path = value.strip()
    drive = len(path) >= 2 and path[0].isalpha() and path[1] == ":"
    absolute = path.startswith(("/", "\\")) or path.lower().startswith("file:") or drive
    if absolute or ".." in path.replace("\\", "/").split("/"):
        raise _rejected(event, "activity_path_not_portable", member, "the folder is not portable", CWD_TOKEN)


def _requires_effect(event: ActivityEvent) -> bool:
    contract = CONTRACT.intent(event.type) if event.kind == "intent" else None
    return contract is not None and contract.effect_required


def _rejected(
    event: ActivityEvent, code: str, member: str, detail: str, expected: object = None, found: object = None
) -> CassetteRejected:
    return CassetteRejected(
        f"activity event {event.sequence}: {detail}",
        code=code,
        place=Place(ACTIVITY_FILE, event.sequence, f"$.{member}"),
        expected=expected,
        found=found,
    )
