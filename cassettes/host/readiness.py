"""Are the facts that a checkpoint waits for true? (replay-state §15)"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cassettes.core.checkpoints import Predicate, fold_call_status, fold_turn_phase
from cassettes.core.compare import equal_settings
from cassettes.core.errors import CassetteRejected, Place
from cassettes.core.state import ReplayState, SessionState
from cassettes.host.model import GoalRow, MessageRow, SessionRow
from cassettes.host.projection import Resolution, same_path

if TYPE_CHECKING:
    from cassettes.host.host import Host

_GOAL = {
    "active": "running",
    "running": "running",
    "paused": "paused",
    "complete": "completed",
    "completed": "completed",
}


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """The runtime entity that stands for a subject. Blank members: not resolved."""

    session_id: str
    turn_id: str = ""
    entity_id: str = ""  # call id, request id
    message_id: str = ""
    ordinal: int = 0  # attachment: 1-based
    kind: str = ""


def holds(host: Host, predicate: Predicate, binding: Binding, expected: ReplayState | None, replay_root: str) -> bool:
    """Whether a predicate is true now. A subject that is not there is not ready.

    Raises `CassetteRejected` (`checkpoint_plan_invalid`) for an unknown type or a value that the type does not know.
    """
    kind, equals = predicate.type, predicate.equals
    if not equals.strip():
        raise _invalid(f"{kind} is compared with nothing", equals)
    check = _CHECKS.get(kind)
    if check is None:
        raise _invalid(f"{kind!r} is no readiness predicate", equals)
    if kind in _FIXED and equals != _FIXED[kind]:
        raise _invalid(f"{kind} can only be {_FIXED[kind]!r}", equals)
    session = host.session(binding.session_id) if binding.session_id else None
    if session is None:
        return False
    return check(_Question(host, session, binding, equals, expected, replay_root))


class _Question(msgspec.Struct, frozen=True):
    host: Host
    session: SessionRow
    binding: Binding
    equals: str
    expected: ReplayState | None
    replay_root: str

    def turn_messages(self) -> list[MessageRow]:
        if not self.binding.turn_id:
            return []
        return self.host.messages(self.session.id, self.binding.turn_id)

    def expected_session(self) -> SessionState | None:
        """What the final state says of this session: the root by its role, others by an id that was preserved (T4)."""
        if self.expected is None:
            return None
        wanted = self.session.id
        if self.session.kind == "root":
            wanted = self.expected.agent.root_session_id
        return next((one for one in self.expected.agent.sessions if one.id == wanted), None)


def _session_exists(question: _Question) -> bool:
    return True


def _session_status(question: _Question) -> bool:
    return question.equals == ("working" if question.session.active_turn_id else "ready")


def _queue_empty(question: _Question) -> bool:
    return not question.session.active_turn_id


def _turn_phase(question: _Question) -> bool:
    turn = question.host.turn(question.session.id, question.binding.turn_id)
    return turn is not None and turn.phase == fold_turn_phase(question.equals)


def _turn_status(question: _Question) -> bool:
    turn = question.host.turn(question.session.id, question.binding.turn_id)
    return turn is not None and (turn.outcome or turn.phase) == question.equals


def _interaction_status(question: _Question) -> bool:
    binding = question.binding
    row = question.host.interaction(question.session.id, binding.turn_id, binding.entity_id)
    return row is not None and row.status == question.equals


def _call_status(question: _Question) -> bool:
    binding = question.binding
    row = question.host.call(question.session.id, binding.turn_id, binding.entity_id)
    if row is None:
        return False
    told = row.payload.get("status")
    status = told if isinstance(told, str) and told.strip() else row.status
    return fold_call_status(status) == fold_call_status(question.equals)


def _plan_status(question: _Question) -> bool:
    return any(
        row.payload.get("messageKind") == "plan" and (row.status or "completed") == question.equals
        for row in question.turn_messages()
    )


def _compaction_status(question: _Question) -> bool:
    for row in question.turn_messages():
        for holder in (row.payload, row.semantics or {}):
            if holder.get("noticeCommand") == "compact" and holder.get("noticeCommandStatus") == question.equals:
                return True
    return False


def _child_status(question: _Question) -> bool:
    session = question.session
    if session.kind != "child":
        return False
    return question.equals == ("completed" if session.ended_at_ms else "running")


def _goal_status(question: _Question) -> bool:
    row = question.host.goal(question.session.id)
    return row is not None and goal_status(row) == question.equals


def goal_status(row: GoalRow) -> str:
    """The status of a goal as checkpoints name it."""
    if row.tombstoned:
        return "cleared"
    observed = row.observed.get("status")
    if isinstance(observed, str) and observed.strip():
        return _GOAL.get(observed.strip(), observed.strip())
    return row.sync_status


def _settings_equal(question: _Question) -> bool:
    wanted = question.expected_session()
    return wanted is not None and equal_settings(wanted.settings, question.session.settings)


def _attachment(question: _Question) -> bool:
    row = question.host.message(question.session.id, question.binding.message_id)
    if row is None:
        return False
    content = row.payload.get("content")
    blocks = content if isinstance(content, list) else []
    names = [block.get("attachmentId") for block in blocks if isinstance(block, dict)]
    count = sum(1 for name in names if isinstance(name, str) and name.strip())
    return count >= max(question.binding.ordinal, 1)


def _project_binding(question: _Question) -> bool:
    wanted, found = question.expected_session(), question.session
    if wanted is None:
        return False
    resolution = Resolution(question.replay_root)
    texts = (
        (wanted.agent_target_id, found.agent_target_id),
        (wanted.provider, found.provider),
        (wanted.rail_section_kind or "conversations", found.rail_section_kind),
    )
    paths = (
        (resolution.path(wanted.cwd), found.cwd),
        (resolution.path(wanted.rail_project_path), found.rail_project_path),
        (_key_path(resolution.rail_key(wanted.rail_section_key) or "conversations"), _key_path(found.rail_section_key)),
    )
    return all(left.strip() == right.strip() for left, right in texts) and all(
        same_path(left, right) for left, right in paths
    )


def _key_path(key: str) -> str:
    return key.strip().removeprefix("project:")


_FIXED = {"session.exists": "true", "settings.equal": "recorded", "project.binding": "recorded"}
_CHECKS = {
    "session.exists": _session_exists,
    "session.status": _session_status,
    "session.queue-empty": _queue_empty,
    "turn.phase": _turn_phase,
    "turn.status": _turn_status,
    "interaction.status": _interaction_status,
    "call.status": _call_status,
    "plan.status": _plan_status,
    "compaction.status": _compaction_status,
    "child-session.status": _child_status,
    "goal.status": _goal_status,
    "settings.equal": _settings_equal,
    "attachment.materialized": _attachment,
    "project.binding": _project_binding,
}


def _invalid(message: str, equals: str) -> CassetteRejected:
    return CassetteRejected(
        f"A readiness predicate cannot be evaluated: {message}.",
        code="checkpoint_plan_invalid",
        place=Place(file="checkpoint-plan.json"),
        found=equals,
        hint="The plan was tampered with or written by another program; record the scenario again.",
    )
