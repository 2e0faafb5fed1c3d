"""From recorded identities to those of this run (replay-runtime §7). Unresolved or ambiguous: the Cassette fails."""

from __future__ import annotations

from typing import Any

from cassettes.core.activity import ActivityEvent
from cassettes.core.errors import Place, ReplayFailed
from cassettes.core.state import ReplayState, SessionState
from cassettes.engine.contract import scoped_key
from cassettes.host.host import Host

JsonObject = dict[str, Any]
_PLAN = {"plan.decision", "plan/decisionRequested", "plan/submitDecision"}
_KEYED_BY_INTERACTION = {"interaction/respond", "plan/submitDecision"}


class Rebased:
    """An activity event with the identities of this run."""

    def __init__(self, event: ActivityEvent, session_id: str, payload: JsonObject, correlation_id: str) -> None:
        self.event = event
        self.session_id = session_id
        self.payload = payload
        self.correlation_id = correlation_id


class IdentityRebaser:
    """Maps recorded Turns and child sessions to live ones, by order and by lineage.

    Turns are bound in the order in which they appear: the n-th new Turn of a session here is the n-th new Turn of the
    expected state. Turns of the initial state keep their ids.
    """

    def __init__(self, host: Host, expected: ReplayState, initial: ReplayState | None) -> None:
        self._host = host
        known = {one.id: {turn.id for turn in one.turns or []} for one in (initial.agent.sessions if initial else [])}
        self._initial = known
        self._recorded = {one.id: one for one in expected.agent.sessions}
        self._root_id = expected.agent.root_session_id
        self._children: dict[str, str] = {}

    def rebase(self, event: ActivityEvent) -> Rebased:
        """`event` with live ids; raises `identity_unresolved` or `identity_ambiguous`."""
        session_id = self.session(event.agent_session_id, event)
        payload = dict(event.payload or {})
        correlation_id = event.correlation_id
        recorded_turn = payload.get("turnId")
        for member in ("turnId", "targetTurnId"):
            turn = payload.get(member)
            if isinstance(turn, str) and turn:
                payload[member] = self.turn(event.agent_session_id, turn, event)
        if event.type in _PLAN and recorded_turn and payload.get("requestId") == recorded_turn:
            payload["requestId"] = payload["turnId"]
        if event.type in _KEYED_BY_INTERACTION and payload.get("turnId"):
            inner = scoped_key(str(payload["turnId"]), str(payload.get("requestId", "")))
            correlation_id = scoped_key(session_id, inner)
        return Rebased(event, session_id, payload, correlation_id)

    def session(self, recorded: str, event: ActivityEvent) -> str:
        """The live session for a recorded one."""
        if not recorded or recorded == self._root_id or recorded in self._initial:
            return recorded
        if recorded not in self._children:
            self._children[recorded] = self._find_child(recorded, event)
        return self._children[recorded]

    def turn(self, recorded_session: str, recorded: str, event: ActivityEvent) -> str:
        """The live Turn for a recorded one."""
        initial = self._initial.get(recorded_session, set())
        if recorded in initial:
            return recorded
        state = self._recorded.get(recorded_session)
        new_recorded = [turn.id for turn in (state.turns or [] if state else []) if turn.id not in initial]
        if recorded not in new_recorded:
            raise _unresolved(event, f"Turn {recorded} is not in the expected state")
        live = self.new_turns(recorded_session, self.session(recorded_session, event))
        index = new_recorded.index(recorded)
        if index >= len(live):
            raise _unresolved(event, f"Turn {recorded} has not begun in this run")
        return live[index]

    def new_turns(self, recorded_session: str, live_session: str) -> list[str]:
        """Live Turns of a session that the initial state does not hold, in order of creation."""
        initial = self._initial.get(recorded_session, set())
        return [turn.id for turn in self._host.turns(live_session) if turn.id not in initial]

    def check_turn_count(self) -> None:
        """More new Turns than were recorded end the Cassette (R22)."""
        for recorded, state in self._recorded.items():
            live_session = recorded if recorded == self._root_id else self._children.get(recorded)
            if live_session is None:
                continue
            initial = self._initial.get(recorded, set())
            allowed = sum(1 for turn in state.turns or [] if turn.id not in initial)
            found = len(self.new_turns(recorded, live_session))
            if found > allowed:
                raise ReplayFailed(
                    "the replay opened a Turn that was never recorded",
                    code="identity_unresolved",
                    place=Place(file="expected-state.json"),
                    expected=f"{allowed} Turns in session {recorded}",
                    found=f"{found}",
                )

    def _find_child(self, recorded: str, event: ActivityEvent) -> str:
        state = self._recorded.get(recorded)
        if state is None or not state.parent_session_id:
            raise _unresolved(event, f"session {recorded} has no recorded lineage")
        root = self.session(state.root_session_id, event)
        parent = self.session(state.parent_session_id, event)
        matches = [one.id for one in self._host.graph(root) if self._is_child(one, state, root, parent, event)]
        if len(matches) > 1:
            raise ReplayFailed(
                f"two live sessions could be {recorded}",
                code="identity_ambiguous",
                place=Place(file="activity-events.jsonl", line=event.sequence),
                found=", ".join(matches),
            )
        if not matches:
            raise _unresolved(event, f"no live session is the child {recorded}")
        return matches[0]

    def _is_child(self, live: Any, state: SessionState, root: str, parent: str, event: ActivityEvent) -> bool:
        if live.kind != "child" or live.root_session_id != root or live.parent_session_id != parent:
            return False
        if live.parent_tool_call_id != state.parent_tool_call_id:
            return False
        if state.root_turn_id and live.root_turn_id != self.turn(state.root_session_id, state.root_turn_id, event):
            return False
        expected_parent = state.parent_turn_id
        return not expected_parent or live.parent_turn_id == self.turn(state.parent_session_id, expected_parent, event)


def _unresolved(event: ActivityEvent, message: str) -> ReplayFailed:
    place = Place(file="activity-events.jsonl", line=event.sequence)
    return ReplayFailed(message, code="identity_unresolved", place=place)
