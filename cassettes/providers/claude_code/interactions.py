"""Approvals, questions and plans of the sidecar (provider-adapters §3.4, §5.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cassettes.host.events import InteractionEvent, SessionEvent, TurnEvent
from cassettes.providers.ports import Answer, Emit, Settle, Steps
from cassettes.providers.turns import OpenTurn

if TYPE_CHECKING:
    from cassettes.providers.claude_code.adapter import ClaudeAdapter

JsonObject = dict[str, Any]
_SEMANTICS = {
    "allow_once": "approve",
    "allow_always": "approve_always",
    "reject_once": "deny",
    "reject_always": "deny_and_stop",
}
_APPROVAL = (("allow_always", "Always allow", "allow_always"), ("allow", "Allow", "allow_once"))
_REJECT = (("reject", "Reject", "reject_once"),)
_PLAN = (
    ("acceptEdits", "Accept, and edit without asking", "allow_always"),
    ("default", "Accept", "allow_once"),
    ("plan", "Keep planning", "reject_once"),
)
_EDITS = {"Edit", "MultiEdit", "Write", "NotebookEdit"}


class Pending(msgspec.Struct):
    """A request that waits for a person."""

    turn: OpenTurn
    transport_turn_id: str
    request_id: str
    call_id: str
    kind: str
    owns_call: bool


class Interactions:
    """Pending requests of one connection."""

    def __init__(self, adapter: ClaudeAdapter) -> None:
        self._adapter = adapter
        self._pending: dict[str, Pending] = {}

    def asked(self, turn: OpenTurn, body: JsonObject) -> Steps:
        """A tool asks: the Turn waits, and a person is asked."""
        request_id, tool = str(body.get("requestId") or ""), str(body.get("toolName") or "")
        if not request_id or not (turn.provider_turn_id or turn.lineage):
            return []
        kind = {"AskUserQuestion": "question", "ExitPlanMode": "plan"}.get(tool, "approval")
        call_id = f"approval:{request_id}" if kind == "approval" else str(body.get("toolCallId") or request_id)
        owns = not turn.is_open(call_id)
        transport_turn = str(body.get("turnId") or turn.turn_id)
        self._pending[request_id] = Pending(turn, transport_turn, request_id, call_id, kind, owns)
        waiting = "waiting_approval" if kind == "approval" else "waiting_input"
        given = body.get("input")
        shown = given if isinstance(given, dict) else {}
        steps: Steps = [Emit(_phase(turn, waiting))]
        if owns:
            payload = {"name": tool, "toolName": tool, "callType": "approval", "kind": "other", "input": shown}
            steps += [Emit(event) for event in turn.start_call(call_id, payload, waiting)]
        metadata: JsonObject = {"callId": str(body.get("toolCallId") or call_id)}
        options = _options(kind, body.get("options"))
        if options:
            metadata["actions"] = options
        if tool in _EDITS:
            metadata["approvalPurpose"] = "file-edit"
        requested = InteractionEvent(
            type="interaction.requested",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            request_id=request_id,
            kind=kind,
            tool_name=tool,
            input=shown,
            metadata=metadata,
            lineage=turn.lineage,
        )
        return [*steps, Emit(requested)]

    def answer(self, answer: Answer, token: str) -> Steps:
        """Send a person's answer; the acknowledgement decides what became of it."""
        pending = self._pending.get(answer.request_id)
        if pending is None:
            message = "the provider does not wait for this answer"
            return [Settle(token=token, outcome="failed", error_code="interaction_not_pending", error_message=message)]
        given = {
            "agentSessionId": self._adapter.session_id,
            "turnId": pending.transport_turn_id,
            "requestId": answer.request_id,
            "action": answer.action,
            "optionId": answer.option_id,
            "payload": answer.payload or {},
        }
        return self._adapter.call("submit_interactive", given, lambda reply: self._acknowledged(answer, token, reply))

    def resolved(self, body: JsonObject) -> Steps:
        """The provider tells that a request is resolved; a no-op after the acknowledgement."""
        pending = self._pending.pop(str(body.get("requestId") or ""), None)
        if pending is None or pending.turn.ended:
            return []
        if body.get("error"):
            return self._superseded(pending)
        return self._done(pending, str(body.get("optionId") or body.get("action") or ""), body.get("payload"))

    def supersede_all(self) -> Steps:
        """Nobody can answer any more."""
        steps: Steps = []
        for request_id in list(self._pending):
            pending = self._pending.pop(request_id)
            if not pending.turn.ended:
                steps += self._superseded(pending)
        return steps

    # ------------------------------------------------------------------ helpers

    def _acknowledged(self, answer: Answer, token: str, reply: JsonObject) -> Steps:
        disposition = str(reply.get("disposition") or ("answered" if reply["ok"] else "unknown"))
        pending = self._pending.get(answer.request_id)
        if disposition != "answered":
            message = str(reply.get("error") or f"the provider took the answer as {disposition}")
            steps: Steps = []
            if disposition == "superseded" and pending is not None:
                del self._pending[answer.request_id]
                steps = self._superseded(pending)
            code = f"interaction_{disposition}"
            return [*steps, Settle(token=token, outcome="failed", error_code=code, error_message=message)]
        chosen = answer.option_id or answer.action
        output: JsonObject = {"requestId": answer.request_id, "selectedId": chosen}
        if answer.payload is not None:
            output["payload"] = answer.payload
        steps = []
        if pending is not None:
            del self._pending[answer.request_id]
            if not pending.turn.ended:
                steps = self._done(pending, chosen, answer.payload)
        return [*steps, Settle(token=token, result={"output": output})]

    def _done(self, pending: Pending, chosen: str, payload: Any) -> Steps:
        turn = pending.turn
        output: JsonObject = {"requestId": pending.request_id, "selectedId": chosen}
        if pending.kind != "approval" and payload is not None:
            output["payload"] = payload
        steps: Steps = []
        if pending.owns_call:
            steps += [Emit(event) for event in turn.end_call(pending.call_id, {"output": output}, "completed")]
        steps.append(Emit(_phase(turn, "working")))
        if pending.kind == "plan" and chosen in ("acceptEdits", "default", "auto"):
            settings = {"planMode": False, "permissionModeId": "acceptEdits" if chosen == "auto" else chosen}
            steps.append(
                Emit(SessionEvent(type="session.updated", session_id=self._adapter.session_id, settings=settings))
            )
        return steps

    def _superseded(self, pending: Pending) -> Steps:
        turn = pending.turn
        event = InteractionEvent(
            type="interaction.superseded",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            request_id=pending.request_id,
            kind=pending.kind,
            lineage=turn.lineage,
        )
        steps: Steps = [Emit(event)]
        if pending.owns_call:
            error = {"error": {"message": "The request was withdrawn."}}
            steps += [Emit(one) for one in turn.end_call(pending.call_id, error, "failed")]
        return steps


def _options(kind: str, told: Any) -> list[JsonObject]:
    """What a person may choose, as `{id, label, semantic}`."""
    if kind == "question":
        return []
    given = [
        (
            str(one.get("id") or one.get("optionId") or ""),
            str(one.get("label") or one.get("name") or ""),
            str(one.get("kind") or ""),
        )
        for one in (told if isinstance(told, list) else [])
        if isinstance(one, dict)
    ]
    options = [one for one in given if one[0]] or list(_PLAN if kind == "plan" else (*_APPROVAL, *_REJECT))
    return [
        {"id": name, "label": label or name, "semantic": _SEMANTICS.get(semantic, "approve")}
        for name, label, semantic in options
    ]


def _phase(turn: OpenTurn, phase: str) -> TurnEvent:
    return TurnEvent(
        type="turn.updated", session_id=turn.session_id, turn_id=turn.turn_id, phase=phase, lineage=turn.lineage
    )
