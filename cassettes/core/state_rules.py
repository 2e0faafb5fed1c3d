"""What a state document must hold: validation, portability and semantic profiles (spec: replay-state §9.1, §11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.state_model import SCHEMA_VERSION, AgentGraph, ReplayState, SessionState, to_wire

CWD_TOKEN = "${REPLAY_CWD}"
HOME_TOKEN = "${REPLAY_HOME}"
PLAN_DECISION_MESSAGE = "client-submit:user:plan-decision:<runtime-operation>"
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Profile:
    """Which domains a replay supports; Agent is mandatory (§11)."""

    name: str
    tutti_mode: bool
    workflows: bool
    issues: bool


FULL = Profile("full", True, True, True)
AGENT = Profile("agent", False, False, False)


# ------------------------------------------------------------------------------------------------- paths
def is_machine_path(text: str) -> bool:
    """Whether a text names a place on one machine: absolute (POSIX, drive, UNC) or a file URL."""
    value = text.strip()
    return value.startswith(("/", "\\\\")) or value.lower().startswith("file://") or bool(_DRIVE.match(value))


def leaves_token_root(text: str) -> bool:
    """Whether a token form path resolves outside the directory its token stands for."""
    value = text.strip()
    for token in (CWD_TOKEN, HOME_TOKEN):
        if value.startswith(token):
            rest = value[len(token) :]
            if rest and rest[0] not in "/\\":
                return True
            return _escapes(rest)
    return False


def _escapes(relative: str) -> bool:
    depth = 0
    for segment in re.split(r"[/\\]", relative):
        if segment == "..":
            depth -= 1
            if depth < 0:
                return True
        elif segment not in ("", "."):
            depth += 1
    return False


@lru_cache(4096)
def is_path_member(name: str) -> bool:
    """Whether strings under a member of this name are paths (V11)."""
    lowered = name.lower()
    return lowered == "cwd" or "path" in lowered


@dataclass(frozen=True, slots=True)
class _Spot:
    """A place in a document; its JSON path is only spelled out when somebody asks."""

    parent: _Spot | None
    step: str

    def __str__(self) -> str:
        steps = []
        spot: _Spot | None = self
        while spot is not None:
            steps.append(spot.step)
            spot = spot.parent
        return "".join(reversed(steps))


def _named_members(document: Any) -> Iterator[tuple[_Spot, str, Any]]:
    """(place, member name, value) of members that the rules name: `workspaceId`, and strings under path members.

    Arrays inherit the name. Not recursive: a document may be nested 10 000 deep.
    """
    pending: list[tuple[_Spot, str, Any]] = [(_Spot(None, "$"), "", document)]
    while pending:
        spot, name, value = pending.pop()
        if isinstance(value, dict):
            for one in sorted(value):
                member = value[one]
                if one == "workspaceId" or (isinstance(member, str) and is_path_member(one)):
                    yield _Spot(spot, f".{one}"), one, member
            inner = [one for one in value if isinstance(value[one], dict | list)]
            pending.extend((_Spot(spot, f".{one}"), one, value[one]) for one in sorted(inner, reverse=True))
        else:
            for index in range(len(value) - 1, -1, -1):
                if isinstance(value[index], dict | list):
                    pending.append((_Spot(spot, f"[{index}]"), name, value[index]))
                elif isinstance(value[index], str) and is_path_member(name):
                    yield _Spot(spot, f"[{index}]"), name, value[index]


def check_portable_document(document: Any, *, file: str = "", artifact: bool = False) -> None:
    """V10 and V11: no workspace, no path of a machine, at any depth.

    In an `artifact` the document is what the file says, so that members which the typed reader does not know count as
    well; and a token path must stay inside its directory (trap T8).
    """

    def refuse(message: str, spot: _Spot, found: object = None, hint: str = "") -> CassetteRejected:
        return CassetteRejected(
            message, code="state_non_portable", place=Place(file=file, path=str(spot)), found=found, hint=hint
        )

    for spot, name, value in _named_members(document):
        if name == "workspaceId" and spot.step == ".workspaceId":
            raise refuse("A state must not know the workspace it was recorded in.", spot)
        if is_machine_path(value):
            hint = "Only paths below the working directory can be recorded, as ${REPLAY_CWD}/…."
            raise refuse("A path of the recording machine is in the state.", spot, value, hint)
        if artifact and leaves_token_root(value):
            raise refuse("A token path leaves its directory.", spot, value)


# ------------------------------------------------------------------------------------------------- V1-V11
class _Checker:
    def __init__(self, state: ReplayState, file: str) -> None:
        self.state = state
        self.file = file

    def fail(self, code: str, message: str, path: str, *, found: object = None, hint: str = "") -> CassetteRejected:
        return CassetteRejected(
            message,
            code=code,
            place=Place(file=self.file, path=path),
            found=found,
            hint=hint or "Record the scenario again; a state file cannot be repaired.",
        )

    def invalid(self, message: str, path: str, found: object = None) -> CassetteRejected:
        return self.fail("state_invalid", message, path, found=found)

    def conflict(self, message: str, path: str, found: object = None) -> CassetteRejected:
        return self.fail("state_conflict", message, path, found=found)

    def check(self) -> None:
        if self.state.schema_version != SCHEMA_VERSION:
            raise CassetteRejected(
                "This version of the state document is not supported.",
                code="state_schema_version",
                place=Place(file=self.file, path="$.schemaVersion"),
                expected=SCHEMA_VERSION,
                found=self.state.schema_version,
                hint="There is no reader for other versions and no migration; record the scenario again.",
            )
        self._graph()
        self._product_arrays()
        check_portable_document(to_wire(self.state), file=self.file)

    def _graph(self) -> None:
        agent = self.state.agent
        if not agent.root_session_id.strip():
            raise self.invalid("The graph names no root Session.", "$.agent.rootSessionId")
        if not agent.sessions:
            raise self.invalid("The graph holds no Session.", "$.agent.sessions")
        ids: set[str] = set()
        for index, session in enumerate(agent.sessions):
            self._session(session, f"$.agent.sessions[{index}]", ids)
        root = next((s for s in agent.sessions if s.id == agent.root_session_id), None)
        if root is None:
            raise self.conflict("The root Session is not in the graph.", "$.agent.rootSessionId", agent.root_session_id)
        if root.kind != "root":
            where = f"$.agent.sessions[{agent.sessions.index(root)}].kind"
            raise self.conflict("The Session named as root has another kind.", where, root.kind)
        for index, session in enumerate(agent.sessions):
            if session.id == agent.root_session_id:
                continue
            path = f"$.agent.sessions[{index}]"
            if session.root_session_id != agent.root_session_id:
                raise self.conflict(
                    "A child belongs to another root.", f"{path}.rootSessionId", session.root_session_id
                )
            if session.parent_session_id not in ids:
                raise self.conflict(
                    "A child's parent is not in the graph.", f"{path}.parentSessionId", session.parent_session_id
                )

    def _session(self, session: SessionState, path: str, ids: set[str]) -> None:
        if not session.id.strip():
            raise self.invalid("A Session has no id.", f"{path}.id")
        if session.kind not in ("root", "child"):
            raise self.invalid("A Session is neither root nor child.", f"{path}.kind", session.kind)
        for name, value in (
            ("agentTargetId", session.agent_target_id),
            ("provider", session.provider),
            ("providerSessionId", session.provider_session_id),
        ):
            if not value.strip():
                raise self.invalid(f"A Session has no {name}.", f"{path}.{name}")
        if session.active_turn_id.strip():
            raise self.conflict(
                "A Turn is still active: the history is not settled.", f"{path}.activeTurnId", session.active_turn_id
            )
        if session.goal is not None and session.goal.pending_operation_id.strip():
            raise self.conflict(
                "A goal operation is pending: the history is not settled.",
                f"{path}.goal.pendingOperationId",
                session.goal.pending_operation_id,
            )
        if session.id in ids:
            raise self.conflict("Two Sessions have the same id.", f"{path}.id", session.id)
        ids.add(session.id)
        turns: set[str] = set()
        for index, turn in enumerate(session.turns):
            where = f"{path}.turns[{index}].id"
            if not turn.id.strip():
                raise self.invalid("A Turn has no id.", where)
            if turn.id in turns:
                raise self.conflict("Two Turns of one Session have the same id.", where, turn.id)
            turns.add(turn.id)
        for index, message in enumerate(session.messages):
            where = f"{path}.messages[{index}]"
            if not message.id.strip():
                raise self.invalid("A Message has no id.", f"{where}.id")
            if message.turn_id.strip() and message.turn_id not in turns:
                raise self.conflict("A Message names an unknown Turn.", f"{where}.turnId", message.turn_id)

    def _product_arrays(self) -> None:
        state = self.state
        for holder, names, prefix in (
            (state.tutti_mode, ("activations", "turnSnapshots"), "$.tuttiMode."),
            (state, ("workflows", "issues"), "$."),
        ):
            for name in names:
                if name in holder.absent:
                    raise self.invalid(f"The array {name} must be written, even when empty.", prefix + name)
        for index, workflow in enumerate(state.workflows):
            if "issueIds" in workflow.absent:
                raise self.invalid(
                    "The array issueIds must be written, even when empty.", f"$.workflows[{index}].issueIds"
                )


def check_state(state: ReplayState, *, file: str = "") -> None:
    """V1-V11 in order, the first failure wins; drive and UNC paths count as absolute (H13).

    Raises `CassetteRejected` with `state_schema_version`, `state_invalid`, `state_conflict` or `state_non_portable`.
    """
    _Checker(state, file).check()


# ------------------------------------------------------------------------------------------------- hardening
def check_artifact_state(state: ReplayState, *, file: str, root_session_id: str) -> None:
    """What a state file inside a Cassette must hold beyond `check_state`.

    The root is the manifest's (H10); tokens stay inside their directory and rail keys are portable (trap T8);
    references inside a Session resolve, and parents form a tree (§9.1, "do not rely on it").
    """
    checker = _Checker(state, file)
    agent = state.agent
    if agent.root_session_id != root_session_id:
        raise CassetteRejected(
            "The state belongs to another root Session than the Cassette.",
            code="state_root_mismatch",
            place=Place(file=file, path="$.agent.rootSessionId"),
            expected=root_session_id,
            found=agent.root_session_id,
            hint="The files of two Cassettes were mixed.",
        )
    check_portable_document(to_wire(state), file=file, artifact=True)
    for index, session in enumerate(agent.sessions):
        path = f"$.agent.sessions[{index}]"
        _check_rail(checker, session, path)
        _check_references(checker, session, path)
    _check_tree(checker, agent)


def _check_rail(checker: _Checker, session: SessionState, path: str) -> None:
    for name, text in (
        ("cwd", session.cwd),
        ("railProjectPath", session.rail_project_path),
        ("railSectionKey", session.rail_section_key),
    ):
        value = text.strip()
        if name == "railSectionKey":
            if not value.startswith("project:"):
                continue
            value = value.removeprefix("project:")
        if is_machine_path(value) or leaves_token_root(value) or _escapes(value):
            raise checker.fail("state_non_portable", "A Session names a place outside its root.", f"{path}.{name}")


def _check_references(checker: _Checker, session: SessionState, path: str) -> None:
    turns = {turn.id for turn in session.turns}
    messages: set[str] = set()
    for index, message in enumerate(session.messages):
        # Two plan decisions of one Session are projected to the same id (trap T9).
        if message.id in messages and message.id != PLAN_DECISION_MESSAGE:
            raise checker.conflict("Two Messages have the same id.", f"{path}.messages[{index}].id", message.id)
        messages.add(message.id)
    requests: set[tuple[str, str]] = set()
    for index, interaction in enumerate(session.interactions):
        where = f"{path}.interactions[{index}]"
        if interaction.turn_id not in turns:
            raise checker.conflict("An Interaction names an unknown Turn.", f"{where}.turnId", interaction.turn_id)
        key = (interaction.turn_id, interaction.request_id)
        if key in requests:
            raise checker.conflict(
                "Two Interactions of one Turn have the same request.", f"{where}.requestId", interaction.request_id
            )
        requests.add(key)


def _check_tree(checker: _Checker, agent: AgentGraph) -> None:
    parents = {session.id: session.parent_session_id for session in agent.sessions}
    for index, session in enumerate(agent.sessions):
        seen: set[str] = set()
        current = session.id
        while current != agent.root_session_id:
            if current in seen:
                raise checker.conflict(
                    "A child is its own ancestor.", f"$.agent.sessions[{index}].parentSessionId", current
                )
            seen.add(current)
            current = parents[current]


# ------------------------------------------------------------------------------------------------- profiles
def check_profile(state: ReplayState, profile: Profile, *, file: str = "") -> None:
    """Refuse a state that holds anything of a disabled domain (§11).

    Raises `CassetteRejected` (`state_profile_unsupported`); the place has the path, `expected` the domain.
    """
    found: list[tuple[str, str]] = []
    if not profile.tutti_mode:
        if state.tutti_mode.activations:
            found.append(("tuttiMode", "$.tuttiMode.activations"))
        if any(not snapshot.unconfigured for snapshot in state.tutti_mode.turn_snapshots):
            found.append(("tuttiMode", "$.tuttiMode.turnSnapshots"))
    if not profile.workflows and state.workflows:
        found.append(("workflows", "$.workflows"))
    if not profile.issues:
        if state.issues:
            found.append(("issues", "$.issues"))
        found += [
            ("issues", f"$.workflows[{index}].issueIds")
            for index, workflow in enumerate(state.workflows)
            if workflow.issue_ids
        ]
    if found:
        domain, path = found[0]
        raise CassetteRejected(
            f"The state uses the domain {domain}, which the profile {profile.name} does not support.",
            code="state_profile_unsupported",
            place=Place(file=file, path=path),
            expected=f"nothing in {domain}",
            hint="Replay this Cassette in a workspace with the full profile.",
        )
