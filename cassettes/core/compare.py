"""Comparison and merge of semantic replay states (spec: replay-state §12, §14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from cassettes.core.errors import CassetteRejected, Conflict, Place
from cassettes.core.file_changes import normal_file_changes
from cassettes.core.state_model import (
    Activation,
    AgentGraph,
    Entity,
    Issue,
    ReplayState,
    SessionState,
    TurnSnapshot,
    Workflow,
    to_wire,
)
from cassettes.core.state_rules import FULL, Profile, check_profile, check_state

K = TypeVar("K")
V = TypeVar("V", bound=Entity)
_GOAL_TIMES = ("startedAtUnixMs", "durationMs")


class _Missing:
    def __repr__(self) -> str:
        return "(missing)"


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference. `expected` and `found` are the normalised values (`MISSING`: no such member; arrays of
    different length: their lengths)."""

    path: str
    expected: object
    found: object


# ------------------------------------------------------------------------------------------------- public
def compare_states(expected: ReplayState, actual: ReplayState, profile: Profile = FULL) -> Mismatch | None:
    """The first mismatch in walk order, or None (§14). The inputs are not modified.

    Raises `CassetteRejected` when one side is invalid or outside the profile; the place names the side.
    """
    return next(iter(mismatches(expected, actual, profile)), None)


def mismatches(expected: ReplayState, actual: ReplayState, profile: Profile = FULL) -> Iterator[Mismatch]:
    """Every mismatch in walk order; the first one is authoritative."""
    documents = []
    for side, state in (("expected", expected), ("actual", actual)):
        try:
            check_state(state)
            check_profile(state, profile)
        except CassetteRejected as error:
            error.message = f"The {side} state: {error.message}"
            error.place = Place(file=side, path=error.place.path)
            raise
        documents.append(normalised(state, profile))
    return _walk(documents[0], documents[1], "$")


def normalised(state: ReplayState, profile: Profile = FULL) -> dict[str, Any]:
    """The document as comparison sees it: structural names, no goal times, folded file changes (§14.1-§14.4)."""
    document = _copy(to_wire(state))
    if not profile.tutti_mode:
        document["tuttiMode"]["turnSnapshots"] = [
            to_wire(snapshot) for snapshot in state.tutti_mode.turn_snapshots if not snapshot.unconfigured
        ]
    document = cast(dict[str, Any], _substituted(document, _structural_names(document)))
    for session in document["agent"]["sessions"] or ():
        for turn in session["turns"] or ():
            if "fileChanges" in turn:
                folded = normal_file_changes(turn["fileChanges"])
                if folded is None:
                    del turn["fileChanges"]
                else:
                    turn["fileChanges"] = folded
        goal = session.get("goal") or {}
        for name in ("desired", "observed"):
            if isinstance(goal.get(name), dict):
                for time in _GOAL_TIMES:
                    goal[name].pop(time, None)
    return document


def equal_settings(expected: object, actual: object) -> bool:
    """Whether composer settings match by the rule of §14.3 (`settings.equal`, §15)."""
    return next(_settings_mismatches(expected, actual, "$"), None) is None


# ------------------------------------------------------------------------------------------------- names
def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _structural_names(document: dict[str, Any]) -> dict[str, str]:
    """The table runtime id → structural name; `payload.seq` is removed and tool-call members overwritten."""
    names: dict[str, str] = {}

    def register(value: object, name: str) -> None:
        if isinstance(value, str) and value:
            names.setdefault(value, name)

    for i, session in enumerate(document["agent"]["sessions"] or ()):
        base = f"session:{i}"
        register(session["id"], base)
        for j, turn in enumerate(session["turns"] or ()):
            register(turn["id"], f"{base}/turn:{j}")
            register(turn.get("rootProviderTurnId"), f"{base}/turn:{j}/rootProviderTurn")
        for k, message in enumerate(session["messages"] or ()):
            name = f"{base}/message:{k}"
            register(message["id"], name)
            payload = message["payload"] or {}
            payload.pop("seq", None)
            register(payload.get("operationId"), f"{name}/operation")
            register(payload.get("callId"), f"{name}/call")
            content = payload.get("content")
            for n, block in enumerate(content if isinstance(content, list) else ()):
                if isinstance(block, dict):
                    register(block.get("attachmentId"), f"{name}/attachment:{n}")
        for m, interaction in enumerate(session["interactions"] or ()):
            name = f"{base}/interaction:{m}"
            register(interaction["requestId"], name)
            call = (interaction["input"] or {}).get("toolCall")
            identity = call.get("toolCallId") if isinstance(call, dict) else None
            if isinstance(call, dict) and isinstance(identity, str):
                if identity.strip():
                    register(identity, f"{name}/toolCall")
                call["toolCallId"] = f"{name}/toolCall"
    for n, activation in enumerate(document["tuttiMode"]["activations"] or ()):
        register(activation["id"], f"activation:{n}")
    for n, workflow in enumerate(document["workflows"] or ()):
        register(workflow["id"], f"workflow:{n}")
    for n, issue in enumerate(document["issues"] or ()):
        register(issue["id"], f"issue:{n}")
    for n, issue in enumerate(document["issues"] or ()):
        for m, task in enumerate(issue["tasks"] or ()):
            register(task["id"], f"issue:{n}/task:{m}")
    return names


def _substituted(value: Any, names: dict[str, str]) -> Any:
    """Replace member values that equal a registered id; array elements and longer texts stay."""
    if isinstance(value, dict):
        return {
            name: names.get(item, item) if isinstance(item, str) else _substituted(item, names)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [item if isinstance(item, str) else _substituted(item, names) for item in value]
    return value


# ------------------------------------------------------------------------------------------------- walk
def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    return "array" if isinstance(value, list) else "object"


def _same_number(left: float, right: float) -> bool:
    try:
        return float(left) == float(right)  # numbers compare as IEEE doubles (E4)
    except OverflowError:
        return left == right


def _walk(expected: Any, actual: Any, path: str) -> Iterator[Mismatch]:
    if path.endswith(".settings") and ".sessions[" in path:
        yield from _settings_mismatches(expected, actual, path)
        return
    kind = _kind(expected)
    if kind != _kind(actual):
        yield Mismatch(path, expected, actual)
    elif kind == "object":
        for name in sorted(expected.keys() | actual.keys()):
            where = f"{path}.{name}"
            if name not in expected or name not in actual:
                yield Mismatch(where, expected.get(name, MISSING), actual.get(name, MISSING))
            else:
                yield from _walk(expected[name], actual[name], where)
    elif kind == "array":
        if len(expected) != len(actual):
            yield Mismatch(path, _length(expected), _length(actual))
            return
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            yield from _walk(left, right, f"{path}[{index}]")
    elif kind == "number":
        if not _same_number(expected, actual):
            yield Mismatch(path, expected, actual)
    elif expected != actual:
        yield Mismatch(path, expected, actual)


def _length(array: list[Any]) -> str:
    return f"{len(array)} element{'' if len(array) == 1 else 's'}"


def _deep_equal(left: Any, right: Any) -> bool:
    kind = _kind(left)
    if kind != _kind(right):
        return False
    if kind == "object":
        return left.keys() == right.keys() and all(_deep_equal(left[name], right[name]) for name in left)
    if kind == "array":
        return len(left) == len(right) and all(_deep_equal(a, b) for a, b in zip(left, right, strict=True))
    if kind == "number":
        return _same_number(left, right)
    return bool(left == right)


def _empty_setting(value: object) -> bool:
    return value is None or value is False or (isinstance(value, str) and not value.strip())


def _settings_mismatches(expected: object, actual: object, path: str) -> Iterator[Mismatch]:
    left: dict[str, Any] = expected if isinstance(expected, dict) else {}
    right: dict[str, Any] = actual if isinstance(actual, dict) else {}
    for name in sorted(left):
        wanted = left[name]
        if name not in right:
            if not _empty_setting(wanted):
                yield Mismatch(f"{path}.{name}", wanted, MISSING)
            continue
        found = right[name]
        if _empty_setting(wanted) and _empty_setting(found):
            continue
        if isinstance(wanted, str) and isinstance(found, str):
            equal = wanted.strip() == found.strip()
        else:
            equal = _deep_equal(wanted, found)
        if not equal:
            yield Mismatch(f"{path}.{name}", wanted, found)


# ------------------------------------------------------------------------------------------------- merge
@dataclass(slots=True)
class MergedState:
    """The initial states of a batch: one graph per input and the product lists, sorted by key (§12)."""

    graphs: list[AgentGraph] = field(default_factory=list)
    activations: list[Activation] = field(default_factory=list)
    turn_snapshots: list[TurnSnapshot] = field(default_factory=list)
    workflows: list[Workflow] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)


def merge_states(states: Iterable[ReplayState]) -> MergedState:
    """Merge validated initial states in registration order.

    Equal objects under one key are kept once, the first; different ones raise `Conflict` (`state_merge_conflict`)
    with the path. Ids are exact here; only the settings rule applies, with the earlier document as expected.
    """
    sessions: dict[str, SessionState] = {}
    activations: dict[str, Activation] = {}
    snapshots: dict[tuple[str, str], TurnSnapshot] = {}
    workflows: dict[str, Workflow] = {}
    issues: dict[str, Issue] = {}
    graphs: list[AgentGraph] = []
    for state in states:
        for session in state.agent.sessions:
            _keep(sessions, session.id, session, f"$.agent.sessions[{session.id}]")
        for activation in state.tutti_mode.activations:
            _keep(activations, activation.id, activation, f"$.tuttiMode.activations[{activation.id}]")
        for snapshot in state.tutti_mode.turn_snapshots:
            where = f"$.tuttiMode.turnSnapshots[{snapshot.session_id}/{snapshot.turn_id}]"
            _keep(snapshots, (snapshot.session_id, snapshot.turn_id), snapshot, where)
        for workflow in state.workflows:
            _keep(workflows, workflow.id, workflow, f"$.workflows[{workflow.id}]")
        for issue in state.issues:
            _keep(issues, issue.id, issue, f"$.issues[{issue.id}]")
        graphs.append(state.agent)
    return MergedState(
        graphs=sorted(graphs, key=lambda graph: graph.root_session_id),
        activations=[activations[key] for key in sorted(activations)],
        turn_snapshots=[snapshots[key] for key in sorted(snapshots)],
        workflows=[workflows[key] for key in sorted(workflows)],
        issues=[issues[key] for key in sorted(issues)],
    )


def _keep(known: dict[K, V], key: K, value: V, path: str) -> None:
    if key not in known:
        known[key] = value
        return
    mismatch = next(_walk(to_wire(known[key]), to_wire(value), path), None)
    if mismatch is not None:
        raise Conflict(
            "Two Cassettes of the batch disagree about the same object.",
            code="state_merge_conflict",
            place=Place(path=mismatch.path),
            expected=mismatch.expected,
            found=mismatch.found,
            hint="Replay these Cassettes in separate workspaces.",
        )
