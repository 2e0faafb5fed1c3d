"""Child sessions of the sidecar: subagents in the foreground and in the background (provider-adapters §5.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassettes.host.events import Lineage, MessageEvent, SessionEvent, TurnEvent
from cassettes.providers.ports import Emit, Steps
from cassettes.providers.turns import OpenTurn

if TYPE_CHECKING:
    from cassettes.providers.claude_code.adapter import ClaudeAdapter

JsonObject = dict[str, Any]


class Child:
    """One child session."""

    def __init__(self, key: str, turn: OpenTurn, lineage: Lineage, background: bool, title: str) -> None:
        self.key = key
        self.turn = turn
        self.lineage = lineage
        self.background = background
        self.title = title


class Children:
    """Children of one connection, by the ids that the provider uses for them."""

    def __init__(self, adapter: ClaudeAdapter) -> None:
        self._adapter = adapter
        self._by_call: dict[str, Child] = {}
        self._by_alias: dict[str, Child] = {}  # agent id, task id

    def owner(self, body: JsonObject) -> OpenTurn | None:
        """The Turn of the child that an event names, or None for the root."""
        child = self._find_by_parent(body)
        return child.turn if child is not None else None

    def started(self, body: JsonObject) -> Steps:
        """A new child, or another word about a known one."""
        call_id = str(body.get("toolCallId") or "")
        if self._find(body) is not None:
            return self.progress(body)
        parent = self._find_by_parent(body)
        owner = parent.turn if parent is not None else self._adapter.live_turn
        root = self._adapter.turn
        if owner is None or owner.ended or root is None:
            return []
        key = call_id or str(body.get("agentId") or "") or str(body.get("taskId") or "")
        lineage = Lineage(
            root_session_id=root.session_id,
            root_turn_id=root.turn_id,
            parent_session_id=owner.session_id,
            parent_turn_id=owner.turn_id,
            parent_tool_call_id=key,
        )
        ids = self._adapter.ids
        turn = OpenTurn(ids.new("session"), ids.new("turn"), lineage)
        title = str(body.get("description") or "")
        background = body.get("background") is True or body.get("subagentAsync") is True
        child = Child(key, turn, lineage, background, title)
        self._register(child, call_id, body)
        started = SessionEvent(
            type="session.started",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            lineage=lineage,
            provider_session_id=str(body.get("agentId") or ""),
            title=title,
        )
        working = TurnEvent(
            type="turn.started", session_id=turn.session_id, turn_id=turn.turn_id, phase="working", lineage=lineage
        )
        return [Emit(started), Emit(working)]

    def progress(self, body: JsonObject) -> Steps:
        """A child works on; a changed description is its new title."""
        child = self._find(body)
        if child is None or child.turn.ended:
            return []
        steps: Steps = []
        title = str(body.get("description") or "")
        if title and title != child.title:
            child.title = title
            updated = SessionEvent(
                type="session.updated", session_id=child.turn.session_id, title=title, lineage=child.lineage
            )
            steps.append(Emit(updated))
        turn = child.turn
        working = TurnEvent(
            type="turn.updated",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            phase="working",
            lineage=child.lineage,
        )
        return [*steps, Emit(working)]

    def completed(self, body: JsonObject) -> Steps:
        """A child came to its end."""
        child = self._find(body)
        if child is None or child.turn.ended:
            return []
        status = str(body.get("status") or "completed")
        outcome = {"failed": "failed", "stopped": "canceled", "canceled": "canceled"}.get(status, "completed")
        error = {"message": str(body.get("summary") or "The agent failed.")} if outcome == "failed" else None
        return self._result(child, body) + self._end(child, outcome, error)

    def result(self, body: JsonObject) -> Steps:
        """The summary of a child changed."""
        child = self._find(body)
        return self._result(child, body) if child is not None and not child.turn.ended else []

    def tool_ended(self, call_id: str, status: str, body: JsonObject) -> Steps:
        """The delegation call ended: a child in the foreground ends with it."""
        child = self._by_call.get(call_id)
        metadata = body.get("metadata")
        if child is None or child.turn.ended or child.background:
            return []
        if isinstance(metadata, dict) and (metadata.get("subagentAsync") or metadata.get("backgroundProcess")):
            child.background = True
            return []
        error = {"message": "The agent failed."} if status == "failed" else None
        return self._end(child, status, error)

    def end_foreground(self, outcome: str) -> Steps:
        """The root's Turn ends: so do children that it waits for."""
        steps: Steps = []
        for child in self._all():
            if not child.background and not child.turn.ended:
                steps += self._end(child, outcome, None)
        return steps

    def end_all(self, outcome: str, error: JsonObject | None) -> Steps:
        """Every open child ends."""
        steps: Steps = []
        for child in self._all():
            if not child.turn.ended:
                steps += self._end(child, outcome, error)
        return steps

    # ------------------------------------------------------------------ helpers

    def _all(self) -> list[Child]:
        found = {id(child): child for child in (*self._by_call.values(), *self._by_alias.values())}
        return list(found.values())

    def _register(self, child: Child, call_id: str, body: JsonObject) -> None:
        if call_id:
            self._by_call[call_id] = child
        for name in ("agentId", "taskId"):
            alias = body.get(name)
            if isinstance(alias, str) and alias:
                self._by_alias.setdefault(alias, child)

    def _find(self, body: JsonObject) -> Child | None:
        """By the delegating call when it is named: two delegations never merge through a weaker alias."""
        call_id = body.get("toolCallId")
        if isinstance(call_id, str) and call_id:
            return self._by_call.get(call_id)
        for name in ("agentId", "taskId"):
            alias = body.get(name)
            if isinstance(alias, str) and alias in self._by_alias:
                return self._by_alias[alias]
        return None

    def _find_by_parent(self, body: JsonObject) -> Child | None:
        metadata = body.get("metadata")
        places = [metadata] if isinstance(metadata, dict) else []
        if body.get("parentToolUseId"):
            places.append(body)
        for place in places:
            parent = place.get("parentToolUseId")
            if isinstance(parent, str) and parent in self._by_call:
                return self._by_call[parent]
            agent = place.get("agentId") or place.get("taskId")
            if isinstance(agent, str) and agent in self._by_alias:
                return self._by_alias[agent]
        return None

    def _result(self, child: Child, body: JsonObject) -> Steps:
        summary = str(body.get("summary") or "")
        if not summary:
            return []
        message = MessageEvent(
            type="message.created",
            session_id=child.turn.session_id,
            turn_id=child.turn.turn_id,
            message_id=f"claude-sdk:child-result:{child.key}",
            status="completed",
            payload={"content": summary, "text": summary, "contentMode": "snapshot", "source": "runtime"},
            lineage=child.lineage,
        )
        return [Emit(message)]

    def _end(self, child: Child, outcome: str, error: JsonObject | None) -> Steps:
        turn = child.turn
        steps: Steps = [Emit(event) for event in turn.close(outcome)]
        kind = {"failed": "turn.failed", "canceled": "turn.canceled"}.get(outcome, "turn.completed")
        ended = TurnEvent(
            type=kind,
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            outcome=outcome,
            phase="settled",
            error=error,
            lineage=child.lineage,
        )
        return [*steps, Emit(ended)]
