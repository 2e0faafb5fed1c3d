"""The semantic replay state as typed values, and its reading and writing (spec: replay-state §1-§6, §2 E1-E7)."""

from __future__ import annotations

import types
import typing
from functools import cache
from typing import Any, ClassVar, TypeVar

import msgspec

from cassettes.core import jsontext
from cassettes.core.errors import CassetteRejected, Place

STATE_FORMAT = "tutti.agent-session-replay-state.v1"
SCHEMA_VERSION = 1
_INTEGER_LIMIT = 1 << 63


class Entity(msgspec.Struct, rename="camel", kw_only=True):
    """Base of the typed objects of the document.

    `omit` names the members left out at their zero value (E2). `absent` holds the wire names of members that are
    always written but were missing or `null` where the value was read: `null` is not the same as `{}` or `[]` (E3).
    """

    omit: ClassVar[frozenset[str]] = frozenset()
    absent: frozenset[str] = frozenset()


class CapabilityRef(Entity):
    """Which capability shaped a Turn, and where the choice came from."""

    capability: str = ""
    source: str = ""


class TurnState(Entity):
    """A Turn (§3.4)."""

    omit: ClassVar[frozenset[str]] = frozenset(
        {
            "outcome",
            "error",
            "fileChanges",
            "completedCommand",
            "sourceGoalOperationId",
            "sourceGoalRevision",
            "sourceGoalRepairEpoch",
            "rootProviderTurnId",
        }
    )
    id: str = ""
    capability_refs: list[CapabilityRef] = []
    phase: str = ""
    outcome: str = ""
    error: dict[str, Any] = {}
    file_changes: dict[str, Any] = {}
    completed_command: dict[str, Any] = {}
    origin: str = ""
    source_goal_operation_id: str = ""
    source_goal_revision: int = 0
    source_goal_repair_epoch: int = 0
    root_provider_turn_id: str = ""


class MessageState(Entity):
    """A Message; the one whose `payload.callId` is present is a tool call (§3.5)."""

    omit: ClassVar[frozenset[str]] = frozenset({"turnId", "kind", "status", "semantics"})
    id: str = ""
    turn_id: str = ""
    role: str = ""
    kind: str = ""
    status: str = ""
    semantics: dict[str, Any] = {}
    payload: dict[str, Any] = {}

    @property
    def call_id(self) -> str:
        """The id of the tool call this Message is, or ""."""
        value = self.payload.get("callId")
        return value if isinstance(value, str) and value.strip() else ""

    def attachments(self) -> list[tuple[int, str]]:
        """(content index, attachment id) of every attachment, in order; the ordinal is the 1-based rank (§3.8)."""
        content = self.payload.get("content")
        found: list[tuple[int, str]] = []
        for index, block in enumerate(content if isinstance(content, list) else []):
            value = block.get("attachmentId") if isinstance(block, dict) else None
            if isinstance(value, str) and value.strip():
                found.append((index, value))
        return found


class InteractionState(Entity):
    """A question of the agent to its user (§3.6)."""

    omit: ClassVar[frozenset[str]] = frozenset({"toolName"})
    request_id: str = ""
    turn_id: str = ""
    kind: str = ""
    status: str = ""
    tool_name: str = ""
    input: dict[str, Any] = {}
    output: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class GoalState(Entity):
    """The goal of a Session (§3.7)."""

    omit: ClassVar[frozenset[str]] = frozenset({"pendingOperationId", "lastError"})
    desired: dict[str, Any] = {}
    observed: dict[str, Any] = {}
    revision: int = 0
    tombstoned: bool = False
    sync_status: str = ""
    pending_operation_id: str = ""
    last_evidence: dict[str, Any] = {}
    last_error: str = ""


class SessionState(Entity):
    """One Session of the graph (§3.2)."""

    omit: ClassVar[frozenset[str]] = frozenset(
        {
            "kind",
            "rootSessionId",
            "rootTurnId",
            "parentSessionId",
            "parentTurnId",
            "parentToolCallId",
            "origin",
            "model",
            "providerResumeCheckpoint",
            "cwd",
            "railSectionKind",
            "railProjectPath",
            "railSectionKey",
            "title",
            "activeTurnId",
            "goal",
        }
    )
    id: str = ""
    kind: str = ""
    root_session_id: str = ""
    root_turn_id: str = ""
    parent_session_id: str = ""
    parent_turn_id: str = ""
    parent_tool_call_id: str = ""
    origin: str = ""
    agent_target_id: str = ""
    provider: str = ""
    provider_session_id: str = ""
    model: str = ""
    settings: dict[str, Any] = {}
    provider_resume_checkpoint: dict[str, Any] = {}
    cwd: str = ""
    rail_section_kind: str = ""
    rail_project_path: str = ""
    rail_section_key: str = ""
    title: str = ""
    active_turn_id: str = ""
    pinned: bool = False
    turns: list[TurnState] = []
    messages: list[MessageState] = []
    interactions: list[InteractionState] = []
    goal: GoalState | None = None


class AgentGraph(Entity):
    """One root Session and its descendants (§3.1)."""

    root_session_id: str = ""
    sessions: list[SessionState] = []

    @property
    def root(self) -> SessionState:
        """The root Session of a checked graph."""
        return next(session for session in self.sessions if session.id == self.root_session_id)


class Activation(Entity):
    """A Tutti Mode activation of one Session (§4)."""

    id: str = ""
    session_id: str = ""
    current_revision_id: str = ""
    current_revision: int = 0
    state: str = ""
    source: str = ""
    effect: int = 0
    speed: int = 0


class TurnSnapshot(Entity):
    """What Tutti Mode was for one dispatched Turn (§4)."""

    omit: ClassVar[frozenset[str]] = frozenset({"activationId", "revisionId", "source"})
    session_id: str = ""
    turn_id: str = ""
    activation_id: str = ""
    revision_id: str = ""
    revision: int = 0
    state: str = ""
    source: str = ""
    preference_version: int = 0
    effect: int = 0
    speed: int = 0
    dispatch_state: str = ""

    @property
    def unconfigured(self) -> bool:
        """Whether the Session never configured the mode (§11); the dispatch state is free."""
        blank = not (self.activation_id.strip() or self.revision_id.strip() or self.source.strip())
        zero = not (self.revision or self.preference_version or self.effect or self.speed)
        return blank and zero and self.state == "inactive"


class TuttiMode(Entity):
    """The Tutti Mode domain (§4)."""

    activations: list[Activation] = []
    turn_snapshots: list[TurnSnapshot] = []


class Workflow(Entity):
    """A workflow that a captured Session started (§5)."""

    id: str = ""
    type: str = ""
    trigger_kind: str = ""
    source_session_id: str = ""
    source_turn_id: str = ""
    source_tool_call_id: str = ""
    status: str = ""
    current_revision_id: str = ""
    issue_ids: list[str] = []


class Task(Entity):
    """One task of an Issue (§6)."""

    omit: ClassVar[frozenset[str]] = frozenset({"content"})
    id: str = ""
    title: str = ""
    content: str = ""
    status: str = ""
    priority: str = ""
    position: int = 0


class Issue(Entity):
    """An Issue that a captured Workflow references (§6)."""

    omit: ClassVar[frozenset[str]] = frozenset({"content"})
    id: str = ""
    title: str = ""
    content: str = ""
    status: str = ""
    tasks: list[Task] = []


class ReplayState(Entity):
    """The document: `initial-state.json` and `expected-state.json` (§1)."""

    schema_version: int = SCHEMA_VERSION
    agent: AgentGraph = msgspec.field(default_factory=AgentGraph)
    tutti_mode: TuttiMode = msgspec.field(default_factory=TuttiMode)
    workflows: list[Workflow] = []
    issues: list[Issue] = []


# ------------------------------------------------------------------------------------------------- reading
T = TypeVar("T", bound=Entity)


class _Member(typing.NamedTuple):
    attribute: str
    wire: str
    kind: str  # text, integer, flag, object, entity, list
    optional: bool
    element: Any  # the Entity class, or None for a list of texts


@cache
def _members(cls: type[Entity]) -> tuple[_Member, ...]:
    hints = typing.get_type_hints(cls)
    found = []
    for field in msgspec.structs.fields(cls):
        if field.name == "absent":
            continue
        hint = hints[field.name]
        optional = isinstance(hint, types.UnionType)
        if optional:
            hint = next(arm for arm in typing.get_args(hint) if arm is not types.NoneType)
        origin = typing.get_origin(hint)
        element: Any = None
        if origin is list:
            kind = "list"
            argument = typing.get_args(hint)[0]
            element = None if argument is str else argument
        elif origin is dict:
            kind = "object"
        elif hint in (str, int, bool):
            kind = {str: "text", int: "integer", bool: "flag"}[hint]
        else:
            kind, element = "entity", hint
        found.append(_Member(field.name, field.encode_name, kind, optional, element))
    return tuple(found)


@cache
def _by_lower_name(cls: type[Entity]) -> dict[str, _Member]:
    return {member.wire.lower(): member for member in _members(cls)}


def _unreadable(file: str, path: str, wanted: str, value: object) -> CassetteRejected:
    return CassetteRejected(
        f"A state member is not {wanted}.",
        code="state_unreadable",
        place=Place(file=file, path=path),
        expected=wanted,
        found=type(value).__name__,
        hint="The state file was damaged or written by another program; record the scenario again.",
    )


def _scalar(member: _Member, value: object, file: str, path: str) -> object:
    if member.kind == "text":
        if not isinstance(value, str):
            raise _unreadable(file, path, "a string", value)
        return value
    if member.kind == "flag":
        if not isinstance(value, bool):
            raise _unreadable(file, path, "true or false", value)
        return value
    if not isinstance(value, int) or isinstance(value, bool) or not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        raise _unreadable(file, path, "an integer of 64 bits", value)
    return value


def _read_list(member: _Member, value: object, file: str, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _unreadable(file, path, "an array", value)
    result: list[Any] = []
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if member.element is not None:
            result.append(_read(member.element, item, file, place))
        elif item is None or isinstance(item, str):
            result.append(item or "")
        else:
            raise _unreadable(file, place, "a string", item)
    return result


def _read(cls: type[T], value: object, file: str, path: str) -> T:
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _unreadable(file, path, "an object", value)
    by_name = _by_lower_name(cls)
    given: dict[str, object] = {}
    for name, item in value.items():
        member = by_name.get(name) or by_name.get(name.lower())
        if member is None:
            continue
        if member.wire in given:
            raise CassetteRejected(
                "A state member is given twice.",
                code="state_unreadable",
                place=Place(file=file, path=f"{path}.{name}"),
                hint="Write every member once.",
            )
        given[member.wire] = item
    arguments: dict[str, Any] = {}
    absent = set()
    for member in _members(cls):
        item = given.get(member.wire)
        place = f"{path}.{member.wire}"
        if item is None:
            if member.kind in ("list", "object") and member.wire not in cls.omit:
                absent.add(member.wire)
            if member.kind == "entity" and not member.optional:
                arguments[member.attribute] = _read(member.element, None, file, place)
            elif member.kind == "integer":
                arguments[member.attribute] = 0
        elif member.kind == "object":
            if not isinstance(item, dict):
                raise _unreadable(file, place, "an object", item)
            arguments[member.attribute] = item
        elif member.kind == "list":
            arguments[member.attribute] = _read_list(member, item, file, place)
        elif member.kind == "entity":
            arguments[member.attribute] = _read(member.element, item, file, place)
        else:
            arguments[member.attribute] = _scalar(member, item, file, place)
    return cls(**arguments, absent=frozenset(absent))


def from_wire(document: object, *, file: str = "") -> ReplayState:
    """A decoded JSON document as a typed state: strict by type, unknown typed members dropped (E5, E7).

    The values of open objects are shared with `document`, not copied.
    """
    if not isinstance(document, dict):
        raise _unreadable(file, "$", "an object", document)
    return _read(ReplayState, document, file, "$")


def decode_state(data: bytes, *, file: str = "") -> ReplayState:
    """Read a state file. Raises `CassetteRejected` (`state_unreadable`, or a JSON code); checks no meaning."""
    return from_wire(jsontext.decode_strict(data, file=file), file=file)


# ------------------------------------------------------------------------------------------------- writing
def _wire(entity: Entity) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for member in _members(type(entity)):
        value = getattr(entity, member.attribute)
        if member.kind == "entity":
            if value is not None:
                result[member.wire] = _wire(value)
            continue
        if not value and member.wire in entity.omit:
            continue
        if not value and member.wire in entity.absent:
            value = None
        elif member.kind == "list":
            value = [item if isinstance(item, str) else _wire(item) for item in value]
        result[member.wire] = value
    return result


def to_wire(state: ReplayState | AgentGraph | SessionState | Entity) -> dict[str, Any]:
    """The JSON document of a typed value, members in the order of the spec's tables (E2, E3).

    Open objects are shared with the state: copy before changing them.
    """
    return _wire(state)


def _sorted_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted_members(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted_members(item) for item in value]
    return value


def _canonical(entity: Entity) -> dict[str, Any]:
    result: dict[str, Any] = {}
    by_wire = {member.wire: member for member in _members(type(entity))}
    for name, value in _wire(entity).items():
        member = by_wire[name]
        typed = getattr(entity, member.attribute)
        if member.kind == "entity":
            result[name] = _canonical(typed)
        elif member.kind == "list" and value is not None and member.element is not None:
            result[name] = [_canonical(item) for item in typed]
        else:
            result[name] = _sorted_members(value)
    return result


def encode_state(state: ReplayState) -> bytes:
    """The bytes of a state file: two-space indentation, one final newline, open objects sorted by name (E1)."""
    text = jsontext.indented(_canonical(state))
    return (text if text.endswith("\n") else text + "\n").encode()
