"""The Codex app-server as a protocol state machine (provider-adapters §4).

One process serves a root session and its children.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cassettes.core.jsontext import compact
from cassettes.host.events import Lineage, RootTurnEvent, SessionEvent, TurnEvent
from cassettes.providers.codex import params
from cassettes.providers.codex.notifications import Notifications
from cassettes.providers.codex.requests import ServerRequests
from cassettes.providers.codex.thread import Thread
from cassettes.providers.ports import Answer, Emit, GoalControl, IdSource, LaunchContext, Prompt, Send, Settle, Steps
from cassettes.providers.turns import OpenTurn

JsonObject = dict[str, Any]
OnResponse = Callable[[JsonObject], Steps]
_CHECKPOINT = "codex-thread"


class CodexAdapter:
    """State of one app-server connection."""

    def __init__(self, ids: IdSource) -> None:
        self.ids = ids
        self.threads: dict[str, Thread] = {}  # by provider thread id
        self.root: Thread | None = None
        self._next_id = 0
        self._waiting: dict[int, OnResponse] = {}
        self._launch: LaunchContext | None = None
        self._start_token = ""
        self._notifications = Notifications(self)
        self._requests = ServerRequests(self)

    # ------------------------------------------------------------------ commands

    def start(self, launch: LaunchContext, token: str) -> Steps:
        self._launch, self._start_token = launch, token
        if launch.attached:
            return self._attach(launch, token)
        return self.call("initialize", params.initialize(), self._initialized)

    def send_prompt(self, prompt: Prompt, token: str) -> Steps:
        thread = self._thread_of(prompt.session_id)
        if prompt.guidance:
            return self._steer(thread, prompt, token)
        turn = OpenTurn(prompt.session_id, prompt.turn_id)
        thread.turn = turn
        text = _text(prompt.content).strip()
        if text == "/compact":
            notice = [Emit(event) for event in turn.compact(f"compaction:{prompt.turn_id}", "running")]
            return notice + self.call(
                "thread/compact/start", {"threadId": thread.id}, lambda answer: self._accepted(turn, token, answer)
            )
        method, given = (
            "turn/start",
            params.turn_params(thread.id, prompt.content, prompt.settings, prompt.client_submit_id),
        )
        return self.call(method, given, lambda answer: self._accepted(turn, token, answer))

    def cancel_turn(self, session_id: str, turn_id: str, token: str) -> Steps:
        thread = self._thread_of(session_id)
        turn = thread.turn
        if turn is None or turn.turn_id != turn_id or turn.ended:
            return [Settle(token=token)]
        turn.canceled = True
        turn.cancel_tokens.append(token)
        steps = self._requests.reject_all(thread)
        if turn.provider_turn_id and (turn.confirmed or thread.child):
            steps += self._interrupt(thread, turn)
        return steps

    def answer(self, answer: Answer, token: str) -> Steps:
        return self._requests.answer(answer, token)

    def control_goal(self, control: GoalControl, token: str) -> Steps:
        thread = self._thread_of(control.session_id)
        if control.action == "clear":
            return self.call("thread/goal/clear", {"threadId": thread.id}, lambda got: [_settled(token, got)])
        given: JsonObject = {"threadId": thread.id}
        if control.objective:
            given["objective"] = control.objective
        given["status"] = "paused" if control.action == "pause" else "active"
        return self.call("thread/goal/set", given, lambda got: [_settled(token, got)])

    def update_settings(self, session_id: str, settings: JsonObject, token: str) -> Steps:
        """Codex has no request for this: settings apply to the next Turn."""
        return [Settle(token=token)]

    def receive(self, message: JsonObject) -> Steps:
        method = message.get("method")
        if isinstance(method, str):
            given = message.get("params")
            body = given if isinstance(given, dict) else {}
            if "id" in message:
                return self._requests.receive(message["id"], method, body)
            return self._notifications.receive(method, body)
        answered = message.get("id")
        waiting = self._waiting.pop(answered, None) if isinstance(answered, int) else None
        return waiting(message) if waiting is not None else []

    def exited(self, exit_code: int, message: str) -> Steps:
        reason = message or f"the provider ended with exit status {exit_code}"
        steps: Steps = []
        for thread in list(self.threads.values()):
            if thread.turn is not None and not thread.turn.ended:
                steps += self._requests.supersede_all(thread)
                steps += self.end_turn(thread, "failed", {"message": reason, "code": "provider_exited"})
        waiting, self._waiting = self._waiting, {}
        gone = {"error": {"message": reason, "code": "provider_exited"}}
        for callback in waiting.values():
            steps += callback(gone)
        return steps

    # ------------------------------------------------------------------ what the parts use

    def call(self, method: str, given: JsonObject, then: OnResponse) -> Steps:
        """Send a request; `then` gets the response."""
        self._next_id += 1
        self._waiting[self._next_id] = then
        return [Send({"id": self._next_id, "method": method, "params": given})]

    def thread(self, thread_id: Any) -> Thread | None:
        """The thread with this id; no id means the root."""
        return self.threads.get(thread_id) if isinstance(thread_id, str) and thread_id else self.root

    def bind(self, thread: Thread, provider_turn_id: str) -> Steps:
        """`turn/started`: the first id wins."""
        turn = thread.turn
        if turn is None or turn.ended:
            return []
        if turn.confirmed or (turn.provider_turn_id and turn.provider_turn_id != provider_turn_id):
            return []
        turn.provider_turn_id, turn.confirmed = provider_turn_id, True
        if thread.child:
            events: Steps = [
                Emit(
                    TurnEvent(
                        type="turn.started",
                        session_id=turn.session_id,
                        turn_id=turn.turn_id,
                        phase="working",
                        lineage=turn.lineage,
                    )
                )
            ]
        else:
            events = [
                Emit(
                    RootTurnEvent(
                        type="root_provider_turn.started",
                        session_id=turn.session_id,
                        turn_id=turn.turn_id,
                        provider_turn_id=provider_turn_id,
                        phase="working",
                    )
                )
            ]
        return events + (self._interrupt(thread, turn) if turn.canceled else [])

    def end_turn(self, thread: Thread, outcome: str, error: JsonObject | None = None) -> Steps:
        """The one end of a Turn: closing events, the terminal event, and whoever waited for it."""
        turn = thread.turn
        if turn is None or turn.ended:
            return []
        steps: Steps = [Emit(event) for event in turn.close(outcome)]
        if thread.child:
            kind = {"completed": "turn.completed", "failed": "turn.failed"}.get(outcome, "turn.canceled")
            steps.append(
                Emit(
                    TurnEvent(
                        type=kind,
                        session_id=turn.session_id,
                        turn_id=turn.turn_id,
                        outcome=outcome,
                        phase="settled",
                        error=error,
                        lineage=turn.lineage,
                    )
                )
            )
        else:
            steps.append(
                Emit(
                    RootTurnEvent(
                        type="root_provider_turn.completed",
                        session_id=turn.session_id,
                        turn_id=turn.turn_id,
                        provider_turn_id=turn.provider_turn_id,
                        outcome=outcome,
                        phase="settled",
                        error=error,
                    )
                )
            )
        tokens, turn.cancel_tokens = turn.cancel_tokens, []
        return steps + [Settle(token=token) for token in tokens]

    def request_resolved(self, thread: Thread, rpc_id: Any) -> Steps:
        """A server request was resolved without us."""
        return self._requests.superseded(thread, rpc_id if isinstance(rpc_id, str) else compact(rpc_id))

    def open_child(self, parent: Thread, child_id: str, call_id: str) -> Steps:
        """A child thread was announced by an item of `parent`."""
        owner = parent.turn
        root = self.root
        if child_id in self.threads or owner is None or root is None or root.turn is None or root.turn.canceled:
            return []
        lineage = Lineage(
            root_session_id=root.session_id,
            root_turn_id=root.turn.turn_id,
            parent_session_id=owner.session_id,
            parent_turn_id=owner.turn_id,
            parent_tool_call_id=call_id,
        )
        session_id, turn_id = self.ids.new("session"), self.ids.new("turn")
        child = Thread(child_id, session_id, child=True)
        child.turn = OpenTurn(session_id, turn_id, lineage)
        self.threads[child_id] = child
        started = SessionEvent(
            type="session.started",
            session_id=session_id,
            turn_id=turn_id,
            lineage=lineage,
            provider_session_id=child_id,
        )
        return [Emit(started)]

    # ------------------------------------------------------------------ bootstrap

    def _initialized(self, answer: JsonObject) -> Steps:
        if "error" in answer:
            return self._not_started(answer)
        steps: Steps = [Send({"method": "initialized"})]
        return steps + self.call("account/read", {}, self._account)

    def _account(self, answer: JsonObject) -> Steps:
        result = answer.get("result")
        found = result if isinstance(result, dict) else {}
        if found.get("requiresOpenaiAuth") is True and not found.get("account"):
            return self._not_started({"error": {"message": "Codex is not signed in.", "code": "auth_required"}})
        return self.call("collaborationMode/list", {}, self._modes)

    def _modes(self, answer: JsonObject) -> Steps:
        assert self._launch is not None
        given = params.thread_params(self._launch.cwd, self._launch.settings)
        resumed = self._launch.provider_session_id
        if resumed:
            return self.call("thread/resume", {"threadId": resumed, **given}, self._opened)
        return self.call("thread/start", given, self._opened)

    def _opened(self, answer: JsonObject) -> Steps:
        result = answer.get("result")
        thread = result.get("thread") if isinstance(result, dict) else None
        thread_id = thread.get("id") if isinstance(thread, dict) else None
        if "error" in answer or not isinstance(thread_id, str) or not thread_id:
            return self._not_started(answer)
        assert self._launch is not None
        self._open_root(thread_id, self._launch.session_id)
        started = SessionEvent(
            type="session.started",
            session_id=self._launch.session_id,
            provider_session_id=thread_id,
            resume_checkpoint={"kind": _CHECKPOINT, "threadId": thread_id},
        )
        return [Emit(started), Settle(token=self._start_token)]

    def _attach(self, launch: LaunchContext, token: str) -> Steps:
        checkpoint = launch.resume_checkpoint or {}
        thread_id = str(checkpoint.get("threadId") or launch.provider_session_id)
        if not launch.resume_checkpoint or not thread_id:
            message = "The recording joined a running session and kept nothing to resume it from; record it again."
            error = "resume_checkpoint_missing"
            return [Settle(token=token, outcome="failed", error_code=error, error_message=message)]
        self._open_root(thread_id, launch.session_id)
        return [Settle(token=token)]

    def _open_root(self, thread_id: str, session_id: str) -> None:
        self.root = Thread(thread_id, session_id)
        self.threads[thread_id] = self.root

    def _not_started(self, answer: JsonObject) -> Steps:
        return [_settled(self._start_token, answer if "error" in answer else {"error": {"message": "no thread"}})]

    # ------------------------------------------------------------------ Turns

    def _accepted(self, turn: OpenTurn, token: str, answer: JsonObject) -> Steps:
        if "error" in answer:
            turn.ended = True
            return [_settled(token, answer)]
        result = answer.get("result")
        named = result.get("turn") if isinstance(result, dict) else None
        provider_turn = named.get("id") if isinstance(named, dict) else None
        if isinstance(provider_turn, str) and provider_turn and not turn.provider_turn_id:
            turn.provider_turn_id = provider_turn
        return [Settle(token=token, result={"providerTurnId": turn.provider_turn_id})]

    def _steer(self, thread: Thread, prompt: Prompt, token: str) -> Steps:
        turn = thread.turn
        if turn is None or turn.ended:
            message = "there is no running Turn to steer"
            return [Settle(token=token, outcome="failed", error_code="agent.no_active_turn", error_message=message)]
        given = {
            "threadId": thread.id,
            "expectedTurnId": turn.provider_turn_id,
            "input": params.user_input(prompt.content),
        }
        return self.call("turn/steer", given, lambda answer: [_settled(token, answer)])

    def _interrupt(self, thread: Thread, turn: OpenTurn) -> Steps:
        given = {"threadId": thread.id, "turnId": "" if thread.child else turn.provider_turn_id}
        return self.call("turn/interrupt", given, lambda answer: [])

    def _thread_of(self, session_id: str) -> Thread:
        found = next((one for one in self.threads.values() if one.session_id == session_id), None)
        assert found is not None, "a session without a thread takes no commands"
        return found


def _settled(token: str, answer: JsonObject) -> Settle:
    error = answer.get("error")
    if error is None:
        result = answer.get("result")
        return Settle(token=token, result=result if isinstance(result, dict) else {})
    body = error if isinstance(error, dict) else {"message": str(error)}
    code = body.get("code")
    return Settle(
        token=token,
        outcome="failed",
        error_code=code if isinstance(code, str) else "provider_error",
        error_reason="" if isinstance(code, str) or code is None else str(code),
        error_message=str(body.get("message") or "the provider refused"),
    )


def _text(content: list[JsonObject]) -> str:
    return "\n".join(str(block.get("text") or "") for block in content if block.get("type") == "text")
