"""An agent that speaks the Agent Client Protocol, as a protocol state machine. One process, one session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cassettes.host.events import RootTurnEvent, SessionEvent
from cassettes.providers.acp.permissions import Permissions
from cassettes.providers.acp.updates import Updates
from cassettes.providers.ports import Answer, Emit, GoalControl, IdSource, LaunchContext, Prompt, Send, Settle, Steps
from cassettes.providers.turns import OpenTurn

JsonObject = dict[str, Any]
OnResponse = Callable[[JsonObject], Steps]

PROTOCOL_VERSION = 1
_CHECKPOINT = "acp-session"
_CLIENT = {"name": "reprise", "title": "Reprise", "version": "0.1.0"}
_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
_METHOD_NOT_FOUND, _AUTH_REQUIRED = -32601, -32000
_OUTCOMES = {"cancelled": "canceled", "refusal": "failed"}
_LIMITS = {"max_tokens": "The answer reached its limit of tokens.", "max_turn_requests": "The Turn reached its limit."}


class AcpAdapter:
    """State of one connection."""

    def __init__(self, ids: IdSource) -> None:
        self.ids = ids
        self.session_id = ""
        self.provider_session_id = ""
        self.turn: OpenTurn | None = None
        self._next_id = -1
        self._turns = 0
        self._waiting: dict[int, OnResponse] = {}
        self._launch: LaunchContext | None = None
        self._start_token = ""
        self._loading = False  # what a `session/load` replays is history, not new work
        self._permissions = Permissions()
        self._updates = Updates(self)

    # ------------------------------------------------------------------ commands

    def start(self, launch: LaunchContext, token: str) -> Steps:
        self._launch, self._start_token, self.session_id = launch, token, launch.session_id
        if launch.attached:
            return self._attach(launch, token)
        given = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": _CAPABILITIES, "clientInfo": dict(_CLIENT)}
        return self.call("initialize", given, self._initialized)

    def send_prompt(self, prompt: Prompt, token: str) -> Steps:
        if prompt.guidance:
            message = "this agent takes no guidance into a running Turn"
            return [Settle(token=token, outcome="failed", error_code="agent.no_active_turn", error_message=message)]
        turn = self.turn = OpenTurn(prompt.session_id, prompt.turn_id)
        self._turns += 1
        turn.provider_turn_id = f"{self.provider_session_id}:{self._turns}"
        given = {"sessionId": self.provider_session_id, "prompt": [_block(one) for one in prompt.content]}
        steps = self.call("session/prompt", given, lambda answer: self._ended(turn, answer))
        return [*steps, Settle(token=token, result={"providerTurnId": turn.provider_turn_id})]

    def cancel_turn(self, session_id: str, turn_id: str, token: str) -> Steps:
        turn = self.live_turn
        if turn is None or turn.turn_id != turn_id:
            return [Settle(token=token)]
        turn.canceled = True
        turn.cancel_tokens.append(token)
        stop: Steps = [Send({"method": "session/cancel", "params": {"sessionId": self.provider_session_id}})]
        return stop + self._permissions.cancel_all(turn)

    def answer(self, answer: Answer, token: str) -> Steps:
        return self._permissions.answer(self.live_turn, answer, token)

    def control_goal(self, control: GoalControl, token: str) -> Steps:
        message = "this agent knows no goals"
        return [Settle(token=token, outcome="failed", error_code="method_not_allowed", error_message=message)]

    def update_settings(self, session_id: str, settings: JsonObject, token: str) -> Steps:
        """The permission mode is the agent's mode; other settings have no request."""
        mode = settings.get("permissionModeId")
        if not isinstance(mode, str) or not mode:
            return [Settle(token=token)]
        given = {"sessionId": self.provider_session_id, "modeId": mode}
        return self.call("session/set_mode", given, lambda answer: [_settled(token, answer)])

    def receive(self, message: JsonObject) -> Steps:
        method, given = message.get("method"), message.get("params")
        body = given if isinstance(given, dict) else {}
        if not isinstance(method, str):
            answered = message.get("id")
            waiting = self._waiting.pop(answered, None) if isinstance(answered, int) else None
            return waiting(message) if waiting is not None else []
        if "id" not in message:
            return self._update(body) if method == "session/update" else []
        turn = self.live_turn
        if method == "session/request_permission" and turn is not None and not turn.canceled:
            return self.confirm() + self._permissions.ask(turn, message["id"], body)
        if method == "session/request_permission":
            return [Send({"id": message["id"], "result": {"outcome": {"outcome": "cancelled"}}})]
        error = {"code": _METHOD_NOT_FOUND, "message": f"{method} is not supported"}
        return [Send({"id": message["id"], "error": error})]

    def exited(self, exit_code: int, message: str) -> Steps:
        reason = message or f"the provider ended with exit status {exit_code}"
        error = {"message": reason, "code": "provider_exited"}
        steps: Steps = []
        turn = self.live_turn
        if turn is not None:
            steps += self._permissions.forget_all(turn)
            steps += self.end_turn(turn, "failed", error)
        waiting, self._waiting = self._waiting, {}
        for callback in waiting.values():
            steps += callback({"error": error})
        return steps

    # ------------------------------------------------------------------ what the parts use

    @property
    def live_turn(self) -> OpenTurn | None:
        """The Turn that is going on."""
        return self.turn if self.turn is not None and not self.turn.ended else None

    def call(self, method: str, given: JsonObject, then: OnResponse) -> Steps:
        """Send a request; `then` gets the response."""
        self._next_id += 1
        self._waiting[self._next_id] = then
        return [Send({"id": self._next_id, "method": method, "params": given})]

    def confirm(self) -> Steps:
        """The first word of the agent: its Turn has begun."""
        turn = self.live_turn
        if turn is None or turn.confirmed:
            return []
        turn.confirmed = True
        started = RootTurnEvent(
            type="root_provider_turn.started",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            provider_turn_id=turn.provider_turn_id,
            phase="working",
        )
        return [Emit(started)]

    def end_turn(self, turn: OpenTurn, outcome: str, error: JsonObject | None = None) -> Steps:
        """The one end of a Turn."""
        if turn.ended:
            return []
        steps = self.confirm() + [Emit(event) for event in turn.close(outcome)]
        completed = RootTurnEvent(
            type="root_provider_turn.completed",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            provider_turn_id=turn.provider_turn_id,
            outcome=outcome,
            phase="settled",
            error=error,
        )
        tokens, turn.cancel_tokens = turn.cancel_tokens, []
        return [*steps, Emit(completed), *(Settle(token=token) for token in tokens)]

    # ------------------------------------------------------------------ bootstrap

    def _initialized(self, answer: JsonObject) -> Steps:
        result = answer.get("result")
        if not isinstance(result, dict):
            return [_settled(self._start_token, answer)]
        assert self._launch is not None
        folder: JsonObject = {"cwd": self._launch.cwd or "/", "mcpServers": []}
        resumed = self._launch.provider_session_id
        if not resumed:
            return self.call("session/new", folder, self._opened)
        capabilities = result.get("agentCapabilities")
        if not isinstance(capabilities, dict) or capabilities.get("loadSession") is not True:
            error = {"message": "This agent cannot take up an earlier session.", "code": "session_load_unsupported"}
            return [_settled(self._start_token, {"error": error})]
        self._loading = True
        return self.call("session/load", {"sessionId": resumed, **folder}, self._loaded)

    def _opened(self, answer: JsonObject) -> Steps:
        result = answer.get("result")
        name = result.get("sessionId") if isinstance(result, dict) else None
        if not isinstance(name, str) or not name:
            return [_settled(self._start_token, answer if "error" in answer else {"error": {"message": "no session"}})]
        return self._ready(name)

    def _loaded(self, answer: JsonObject) -> Steps:
        self._loading = False
        assert self._launch is not None
        if "error" in answer:
            return [_settled(self._start_token, answer)]
        return self._ready(self._launch.provider_session_id)

    def _ready(self, provider_session_id: str) -> Steps:
        self.provider_session_id = provider_session_id
        started = SessionEvent(
            type="session.started",
            session_id=self.session_id,
            provider_session_id=provider_session_id,
            resume_checkpoint={"kind": _CHECKPOINT, "sessionId": provider_session_id},
        )
        return [Emit(started), Settle(token=self._start_token)]

    def _attach(self, launch: LaunchContext, token: str) -> Steps:
        self.provider_session_id = str((launch.resume_checkpoint or {}).get("sessionId") or launch.provider_session_id)
        if self.provider_session_id:
            return [Settle(token=token)]
        message = "The recording joined a running session and kept nothing to resume it from; record it again."
        error = "resume_checkpoint_missing"
        return [Settle(token=token, outcome="failed", error_code=error, error_message=message)]

    # ------------------------------------------------------------------ Turns

    def _update(self, body: JsonObject) -> Steps:
        update = body.get("update")
        if self._loading or not isinstance(update, dict) or body.get("sessionId") != self.provider_session_id:
            return []
        return self._updates.receive(update)

    def _ended(self, turn: OpenTurn, answer: JsonObject) -> Steps:
        """The response to `session/prompt`: how the Turn ended."""
        left = self._permissions.cancel_all(turn)
        result = answer.get("result")
        if not isinstance(result, dict):
            outcome, why = ("canceled", None) if turn.canceled else ("failed", _error(answer))
            return left + self.end_turn(turn, outcome, why)
        reason = str(result.get("stopReason") or "end_turn")
        outcome = _OUTCOMES.get(reason, "completed")
        steps = left + self.confirm()
        if reason in _LIMITS:
            notice = turn.notice(f"stop:{turn.turn_id}", "limit", _LIMITS[reason], "", "warning")
            steps += [Emit(event) for event in notice]
        refusal = {"message": "The agent refused to go on.", "code": "refusal"} if reason == "refusal" else None
        return steps + self.end_turn(turn, outcome, refusal)


def _block(block: JsonObject) -> JsonObject:
    """A block of a prompt as the protocol has it."""
    if block.get("type") == "image":
        kept = {name: block[name] for name in ("mimeType", "data") if isinstance(block.get(name), str)}
        return {"type": "image", **kept}
    return {"type": "text", "text": str(block.get("text") or "")}


def _error(answer: JsonObject) -> JsonObject:
    error = answer.get("error")
    body = error if isinstance(error, dict) else {}
    code = body.get("code")
    named = "auth_required" if code == _AUTH_REQUIRED else code if isinstance(code, str) else "provider_error"
    return {"message": str(body.get("message") or "the provider refused"), "code": named}


def _settled(token: str, answer: JsonObject) -> Settle:
    result = answer.get("result")
    if "error" not in answer and (result is None or isinstance(result, dict)):
        return Settle(token=token, result=result or {})
    error = _error(answer)
    return Settle(token=token, outcome="failed", error_code=error["code"], error_message=error["message"])
