"""Questions of the app-server that need an answer (provider-adapters §3.4, §4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassettes.core.jsontext import compact
from cassettes.host.events import InteractionEvent, TurnEvent
from cassettes.providers.codex import params
from cassettes.providers.codex.thread import PendingRequest, Thread
from cassettes.providers.ports import Answer, Emit, Send, Settle, Steps
from cassettes.providers.turns import OpenTurn

if TYPE_CHECKING:
    from cassettes.providers.codex.adapter import CodexAdapter

JsonObject = dict[str, Any]
_OPTIONS = (
    ("approve", "Approve", "approve"),
    ("approve_for_session", "Approve for session", "approve_always"),
    ("deny", "Deny", "deny"),
    ("abort", "Deny and stop the turn", "deny_and_stop"),
)
_V2 = {"approve": "accept", "approve_for_session": "acceptForSession", "deny": "decline", "abort": "cancel"}
_V1 = {"approve": "approved", "approve_for_session": "approved_for_session", "deny": "denied", "abort": "abort"}
_DECISIONS = {
    "item/commandExecution/requestApproval": _V2,
    "item/fileChange/requestApproval": _V2,
    "execCommandApproval": _V1,
    "applyPatchApproval": _V1,
}
_EDITS = {"item/fileChange/requestApproval", "applyPatchApproval"}
_PERMISSIONS, _INPUT = "item/permissions/requestApproval", "item/tool/requestUserInput"
_KNOWN = {*_DECISIONS, _PERMISSIONS, _INPUT}
_YES = {"approve", "approved", "allow", "allow_once", "accept", "accepted", "yes", "ok"}
_NO = {"deny", "denied", "reject", "reject_once", "decline", "no"}


class ServerRequests:
    """Pending requests of all threads of a connection."""

    def __init__(self, adapter: CodexAdapter) -> None:
        self._adapter = adapter

    def receive(self, rpc_id: Any, method: str, given: JsonObject) -> Steps:
        """A request: it becomes an Interaction, or is refused at once."""
        if method not in _KNOWN:
            return [_refusal(rpc_id, -32601, f"{method} is not supported")]
        thread = self._adapter.thread(given.get("threadId") or given.get("conversationId"))
        turn = thread.live_turn if thread is not None else None
        if thread is None or turn is None or turn.canceled:
            return [_refusal(rpc_id, -32000, "there is no running Turn to ask in")]
        call_id = str(given.get("itemId") or given.get("approvalId") or given.get("callId") or f"request:{rpc_id}")
        request_id = rpc_id if isinstance(rpc_id, str) else compact(rpc_id)
        kind = "question" if method == _INPUT else "approval"
        owns = not turn.is_open(call_id)
        request = PendingRequest(rpc_id, method, given, call_id, request_id, kind, owns)
        thread.requests[request_id] = request
        return self._ask(turn, request)

    def answer(self, answer: Answer, token: str) -> Steps:
        """A person's answer: the response first, then what follows of it."""
        found = self._find(answer)
        if found is None:
            message = "the provider does not wait for this answer"
            return [Settle(token=token, outcome="failed", error_code="interaction_not_pending", error_message=message)]
        thread, request = found
        choice = _choice(answer)
        response = self._response(request, choice, answer)
        if response is None:
            message = f"{answer.option_id or answer.action!r} is not one of the options"
            return [Settle(token=token, outcome="failed", error_code="invalid_request", error_message=message)]
        del thread.requests[request.request_id]
        output: JsonObject = {"requestId": request.request_id, "selectedId": choice}
        if request.kind == "question":
            output.update({"action": answer.action, "payload": answer.payload})
        steps: Steps = [response]
        turn = thread.live_turn
        if turn is not None:
            if request.owns_call:
                steps += [Emit(event) for event in turn.end_call(request.call_id, {"output": output}, "completed")]
            steps.append(Emit(_working(turn)))
        text = str((answer.payload or {}).get("message") or "")
        steps.append(Settle(token=token, result={"output": output}))
        if text and choice in ("deny", "abort") and turn is not None:
            given = {
                "threadId": thread.id,
                "expectedTurnId": turn.provider_turn_id,
                "input": params.user_input([{"type": "text", "text": text}]),
            }
            steps += self._adapter.call("turn/steer", given, lambda response: [])
        return steps

    def reject_all(self, thread: Thread) -> Steps:
        """A cancel answers every pending request with an error."""
        steps: Steps = []
        for request in list(thread.requests.values()):
            steps.append(_refusal(request.rpc_id, -32000, "the Turn was canceled"))
        return steps + self.supersede_all(thread)

    def supersede_all(self, thread: Thread) -> Steps:
        """Nobody will answer the pending requests any more."""
        steps: Steps = []
        for request_id in list(thread.requests):
            steps += self.superseded(thread, request_id)
        return steps

    def superseded(self, thread: Thread, request_id: str) -> Steps:
        """A pending request was resolved elsewhere."""
        request = thread.requests.pop(request_id, None)
        turn = thread.live_turn
        if request is None or turn is None:
            return []
        event = InteractionEvent(
            type="interaction.superseded",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            request_id=request.request_id,
            kind=request.kind,
            lineage=turn.lineage,
        )
        steps: Steps = [Emit(event)]
        if request.owns_call:
            error = {"error": {"message": "The request was withdrawn."}}
            steps += [Emit(one) for one in turn.end_call(request.call_id, error, "failed")]
        return [*steps, Emit(_working(turn))]

    # ------------------------------------------------------------------ helpers

    def _ask(self, turn: OpenTurn, request: PendingRequest) -> Steps:
        given = request.params
        title = _title(request)
        question = request.kind == "question"
        waiting = "waiting_input" if question else "waiting_approval"
        steps: Steps = [
            Emit(
                TurnEvent(
                    type="turn.updated",
                    session_id=turn.session_id,
                    turn_id=turn.turn_id,
                    phase=waiting,
                    lineage=turn.lineage,
                )
            )
        ]
        if request.owns_call:
            name = "AskUserQuestion" if question else title
            payload = {"name": name, "toolName": name, "callType": "approval", "title": title, "kind": "other"}
            steps += [Emit(one) for one in turn.start_call(request.call_id, {**payload, "input": given}, waiting)]
        metadata: JsonObject = {"callId": request.call_id}
        if not question:
            metadata["actions"] = [
                {"id": name, "label": label, "semantic": semantic}
                for name, label, semantic in _OPTIONS
                if request.method != _PERMISSIONS or name in ("approve", "deny")
            ]
        if request.method in _EDITS:
            metadata["approvalPurpose"] = "file-edit"
        event = InteractionEvent(
            type="interaction.requested",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            request_id=request.request_id,
            kind=request.kind,
            tool_name=title if not question else "AskUserQuestion",
            input=given,
            metadata=metadata,
            lineage=turn.lineage,
        )
        return [*steps, Emit(event)]

    def _response(self, request: PendingRequest, choice: str, answer: Answer) -> Send | None:
        if request.method == _INPUT:
            return Send({"id": request.rpc_id, "result": {"answers": _answers(request.params, answer)}})
        if request.method == _PERMISSIONS:
            if choice in ("approve", "approve_for_session"):
                result = {"permissions": request.params.get("permissions") or {}, "scope": "session"}
                return Send({"id": request.rpc_id, "result": result})
            return _refusal(request.rpc_id, -32000, "denied")
        if not choice:
            return None
        return Send({"id": request.rpc_id, "result": {"decision": _DECISIONS[request.method][choice]}})

    def _find(self, answer: Answer) -> tuple[Thread, PendingRequest] | None:
        for thread in self._adapter.threads.values():
            request = thread.requests.get(answer.request_id)
            if request is not None and thread.session_id == answer.session_id:
                return thread, request
        return None


def _choice(answer: Answer) -> str:
    """The option that an answer names: by exact id, else by a synonym."""
    known = {name for name, _, _ in _OPTIONS}
    for told in (answer.option_id, answer.action):
        word = told.strip().lower()
        if word in known:
            return word
        if word in _YES:
            return "approve"
        if word in _NO:
            return "deny"
        if word in ("allow_always", "approve_always"):
            return "approve_for_session"
        if word in ("reject_always", "deny_and_stop", "cancel"):
            return "abort"
    return ""


def _answers(given: JsonObject, answer: Answer) -> JsonObject:
    """Answers to the questions, by question id."""
    payload = answer.payload or {}
    told = payload.get("answers")
    answers: JsonObject = {}
    for question in given.get("questions") or []:
        if not isinstance(question, dict):
            continue
        name = str(question.get("id") or "")
        value = told.get(name) if isinstance(told, dict) else payload.get(name)
        if isinstance(value, dict) and "answers" in value:
            value = value["answers"]
        values = value if isinstance(value, list) else [value] if value is not None else []
        answers[name] = {"answers": [str(one) for one in values]}
    return answers


def _title(request: PendingRequest) -> str:
    if request.method == _INPUT:
        return "AskUserQuestion"
    if request.method == _PERMISSIONS:
        return "Grant additional permissions"
    if request.method in _EDITS:
        return "Apply file changes"
    command = request.params.get("command")
    text = " ".join(str(part) for part in command) if isinstance(command, list) else str(command or "")
    return text or "Run command"


def _working(turn: OpenTurn) -> TurnEvent:
    return TurnEvent(
        type="turn.updated",
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        phase="working",
        lineage=turn.lineage,
    )


def _refusal(rpc_id: Any, code: int, message: str) -> Send:
    return Send({"id": rpc_id, "error": {"code": code, "message": message}})
