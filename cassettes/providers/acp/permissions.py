"""Permission requests of an agent: Interactions that a person answers."""

from __future__ import annotations

from typing import Any

from cassettes.core.jsontext import compact
from cassettes.host.events import InteractionEvent, TurnEvent
from cassettes.providers.ports import Answer, Emit, Send, Settle, Steps
from cassettes.providers.turns import OpenTurn

JsonObject = dict[str, Any]
_SEMANTICS = {
    "allow_once": "approve",
    "allow_always": "approve_always",
    "reject_once": "deny",
    "reject_always": "deny_and_stop",
}
_YES = {"approve", "allow", "allow_once", "accept", "yes", "ok"}
_ALWAYS = {"approve_for_session", "allow_always", "approve_always", "acceptforsession"}
_NO = {"deny", "reject", "reject_once", "decline", "no"}
_NEVER = {"reject_always", "abort"}


class Permissions:
    """What the agent asked and nobody has answered yet."""

    def __init__(self) -> None:
        self._asked: dict[str, JsonObject] = {}  # by request id: the JSON-RPC id and the parameters

    def ask(self, turn: OpenTurn, rpc_id: Any, given: JsonObject) -> Steps:
        """`session/request_permission`."""
        request_id = rpc_id if isinstance(rpc_id, str) else compact(rpc_id)
        options = _options(given)
        self._asked[request_id] = {"id": rpc_id, "options": options}
        call = given.get("toolCall")
        call = call if isinstance(call, dict) else {}
        actions = [
            {"id": one["id"], "label": one["label"], "semantic": _SEMANTICS.get(one["kind"], "")} for one in options
        ]
        asked = InteractionEvent(
            type="interaction.requested",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            request_id=request_id,
            kind="approval",
            tool_name=str(call.get("title") or "Tool"),
            input={name: call[name] for name in ("title", "kind", "rawInput") if call.get(name) is not None},
            metadata={"callId": str(call.get("toolCallId") or ""), "actions": actions},
        )
        waiting = TurnEvent(
            type="turn.updated", session_id=turn.session_id, turn_id=turn.turn_id, phase="waiting_approval"
        )
        return [Emit(waiting), Emit(asked)]

    def answer(self, turn: OpenTurn | None, answer: Answer, token: str) -> Steps:
        """A person chose: the option goes back to the agent."""
        asked = self._asked.get(answer.request_id)
        if asked is None:
            message = "the provider does not wait for this answer"
            return [Settle(token=token, outcome="failed", error_code="interaction_not_pending", error_message=message)]
        chosen = _chosen(asked["options"], answer)
        if chosen is None:
            message = f"{answer.option_id or answer.action!r} is not one of the options"
            return [Settle(token=token, outcome="failed", error_code="invalid_request", error_message=message)]
        del self._asked[answer.request_id]
        steps: Steps = [Send({"id": asked["id"], "result": {"outcome": {"outcome": "selected", "optionId": chosen}}})]
        if turn is not None:
            steps.append(Emit(_working(turn)))
        output = {"requestId": answer.request_id, "selectedId": chosen}
        return [*steps, Settle(token=token, result={"output": output})]

    def cancel_all(self, turn: OpenTurn) -> Steps:
        """The Turn ends: the agent hears that nobody will choose."""
        sends: Steps = []
        events: Steps = []
        for request_id, asked in self._asked.items():
            sends.append(Send({"id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}))
            superseded = InteractionEvent(
                type="interaction.superseded",
                session_id=turn.session_id,
                turn_id=turn.turn_id,
                request_id=request_id,
                kind="approval",
            )
            events.append(Emit(superseded))
        self._asked.clear()
        return sends + events

    def forget_all(self, turn: OpenTurn) -> Steps:
        """The agent is gone: what it asked is void."""
        return [step for step in self.cancel_all(turn) if isinstance(step, Emit)]


def _options(given: JsonObject) -> list[JsonObject]:
    options = given.get("options")
    kept = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
    return [
        {"id": str(one.get("optionId") or ""), "label": str(one.get("name") or ""), "kind": str(one.get("kind") or "")}
        for one in kept
    ]


def _chosen(options: list[JsonObject], answer: Answer) -> str | None:
    """The id of the option that an answer means: by its id, else by the kind that its action names."""
    if any(one["id"] == answer.option_id for one in options):
        return answer.option_id
    wish = (answer.option_id or answer.action).strip().lower()
    kinds = (
        ["allow_once", "allow_always"] if wish in _YES
        else ["allow_always", "allow_once"] if wish in _ALWAYS
        else ["reject_once", "reject_always"] if wish in _NO
        else ["reject_always", "reject_once"] if wish in _NEVER
        else []
    )  # fmt: skip
    for kind in kinds:
        for one in options:
            if one["kind"] == kind:
                return str(one["id"])
    return None


def _working(turn: OpenTurn) -> TurnEvent:
    return TurnEvent(type="turn.updated", session_id=turn.session_id, turn_id=turn.turn_id, phase="working")
