"""The Claude Code sidecar as a protocol state machine (provider-adapters §5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cassettes.host.events import RootTurnEvent, SessionEvent
from cassettes.providers.claude_code.children import Children
from cassettes.providers.claude_code.events import Events
from cassettes.providers.claude_code.interactions import Interactions
from cassettes.providers.ports import Answer, Emit, GoalControl, IdSource, LaunchContext, Prompt, Send, Settle, Steps
from cassettes.providers.turns import OpenTurn

JsonObject = dict[str, Any]
OnReply = Callable[[JsonObject], Steps]
VERSION = 8
_CHECKPOINT = "claude-session"


class ClaudeAdapter:
    """State of one sidecar connection."""

    def __init__(self, ids: IdSource) -> None:
        self.ids = ids
        self.session_id = ""
        self.provider_session_id = ""
        self.turn: OpenTurn | None = None  # the root's
        self.children = Children(self)
        self.interactions = Interactions(self)
        self._version = VERSION
        self._next_id = 0
        self._waiting: dict[str, OnReply] = {}
        self._launch: LaunchContext | None = None
        self._events = Events(self)

    # ------------------------------------------------------------------ commands

    def start(self, launch: LaunchContext, token: str) -> Steps:
        self._launch = launch
        self._version = launch.protocol_version or VERSION
        self.session_id = launch.session_id
        self.provider_session_id = launch.provider_session_id
        if launch.attached:
            if launch.provider_session_id:
                return [Settle(token=token)]
            message = "The recording joined a running session and kept nothing to resume it from; record it again."
            error = "resume_checkpoint_missing"
            return [Settle(token=token, outcome="failed", error_code=error, error_message=message)]
        settings = launch.settings
        names = ("model", "permissionModeId", "planMode", "reasoningEffort", "speed")
        given: JsonObject = {
            "agentSessionId": launch.session_id,
            "providerSessionId": launch.provider_session_id,
            "cwd": launch.cwd,
            "restore": launch.restored,
            "settings": {name: settings[name] for name in names if settings.get(name) not in (None, "")},
        }
        if settings.get("permissionModeId"):
            given["permissionModeId"] = settings["permissionModeId"]
        return self.call("start", given, lambda reply: self._started(token, reply))

    def send_prompt(self, prompt: Prompt, token: str) -> Steps:
        text = "\n".join(str(block.get("text") or "") for block in prompt.content if block.get("type") == "text")
        given: JsonObject = {"agentSessionId": prompt.session_id, "prompt": text, "content": prompt.content}
        if prompt.guidance:
            if self.live_turn is None:
                message = "there is no running Turn to steer"
                return [Settle(token=token, outcome="failed", error_code="agent.no_active_turn", error_message=message)]
            return self.call("guide", given, lambda reply: [_settled(token, reply)])
        turn = self.turn = OpenTurn(prompt.session_id, prompt.turn_id)
        given["turnId"] = prompt.turn_id
        given["promptCorrelationId"] = prompt.client_submit_id or prompt.turn_id
        steps: Steps = []
        if text.strip() == "/compact":
            steps += [Emit(event) for event in turn.compact(compaction_id(turn), "running")]
        return steps + self.call("exec", given, lambda reply: self._accepted(turn, token, reply))

    def cancel_turn(self, session_id: str, turn_id: str, token: str) -> Steps:
        turn = self.turn
        if turn is None or turn.turn_id != turn_id or turn.ended:
            return [Settle(token=token)]
        turn.canceled = True
        turn.cancel_tokens.append(token)
        return self.send_cancel(turn) if turn.provider_turn_id else []

    def answer(self, answer: Answer, token: str) -> Steps:
        return self.interactions.answer(answer, token)

    def control_goal(self, control: GoalControl, token: str) -> Steps:
        message = "goals of Claude Code are set by a prompt"
        return [Settle(token=token, outcome="failed", error_code="method_not_allowed", error_message=message)]

    def update_settings(self, session_id: str, settings: JsonObject, token: str) -> Steps:
        names = {
            "planMode": "planMode",
            "permissionModeId": "permissionMode",
            "model": "model",
            "reasoningEffort": "effort",
            "speed": "speed",
        }
        given = {told: settings[name] for name, told in names.items() if name in settings}
        if not given:
            return [Settle(token=token)]
        return self.call("apply_settings", {"agentSessionId": session_id, **given}, lambda got: [_settled(token, got)])

    def receive(self, message: JsonObject) -> Steps:
        kind = message.get("type")
        payload = message.get("payload")
        body = payload if isinstance(payload, dict) else {}
        if kind in ("ok", "error") and "id" in message:
            waiting = self._waiting.pop(str(message["id"]), None)
            return waiting({"ok": kind == "ok", **body}) if waiting is not None else []
        return self._events.receive(str(kind), body)

    def exited(self, exit_code: int, message: str) -> Steps:
        reason = message or f"the provider ended with exit status {exit_code}"
        error = {"message": reason, "code": "provider_exited"}
        steps: Steps = self.children.end_all("failed", error)
        if self.live_turn is not None:
            steps += self.interactions.supersede_all()
            steps += self.end_turn("failed", error)
        waiting, self._waiting = self._waiting, {}
        for callback in waiting.values():
            steps += callback({"ok": False, "error": reason, "code": "provider_exited"})
        return steps

    # ------------------------------------------------------------------ what the parts use

    @property
    def live_turn(self) -> OpenTurn | None:
        """The root's Turn that is going on."""
        return self.turn if self.turn is not None and not self.turn.ended else None

    def call(self, kind: str, payload: JsonObject, then: OnReply) -> Steps:
        """Send a request; `then` gets the payload of its reply with `ok` true or false."""
        self._next_id += 1
        name = f"request-{self._next_id}"
        self._waiting[name] = then
        return [Send({"version": self._version, "id": name, "type": kind, "payload": payload})]

    def bind(self, turn: OpenTurn, provider_turn_id: str) -> Steps:
        """The provider named its Turn; a cancel that waited for the name goes out."""
        if turn.provider_turn_id == provider_turn_id:
            return []
        turn.provider_turn_id, turn.confirmed = provider_turn_id, True
        started = RootTurnEvent(
            type="root_provider_turn.started",
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            provider_turn_id=provider_turn_id,
            phase="working",
        )
        return [Emit(started), *(self.send_cancel(turn) if turn.canceled else [])]

    def send_cancel(self, turn: OpenTurn) -> Steps:
        """Ask the sidecar to interrupt."""
        given = {"agentSessionId": turn.session_id, "turnId": turn.turn_id}
        return self.call("cancel", given, lambda reply: [])

    def end_turn(self, outcome: str, error: JsonObject | None = None) -> Steps:
        """The one end of the root's Turn."""
        turn = self.live_turn
        if turn is None:
            return []
        steps: Steps = [Emit(event) for event in turn.close(outcome)]
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

    # ------------------------------------------------------------------ replies

    def _started(self, token: str, reply: JsonObject) -> Steps:
        if not reply["ok"]:
            return [_settled(token, reply)]
        provider_session = reply.get("providerSessionId")
        steps: Steps = []
        if isinstance(provider_session, str) and provider_session:
            steps += self.opened(provider_session)
        return [*steps, Settle(token=token)]

    def opened(self, provider_session_id: str) -> Steps:
        """The provider session is known; told once."""
        if provider_session_id == self.provider_session_id and self._told_session:
            return []
        self.provider_session_id = provider_session_id
        self._told_session = True
        started = SessionEvent(
            type="session.started",
            session_id=self.session_id,
            provider_session_id=provider_session_id,
            resume_checkpoint={"kind": _CHECKPOINT, "providerSessionId": provider_session_id},
        )
        return [Emit(started)]

    _told_session = False

    def _accepted(self, turn: OpenTurn, token: str, reply: JsonObject) -> Steps:
        if not reply["ok"]:
            turn.ended = True
        return [_settled(token, reply)]


def compaction_id(turn: OpenTurn) -> str:
    """Message id of the compaction notice of a Turn."""
    return f"claude-sdk:compact:{turn.turn_id}"


def _settled(token: str, reply: JsonObject) -> Settle:
    if reply["ok"]:
        return Settle(token=token, result={name: item for name, item in reply.items() if name != "ok"})
    return Settle(
        token=token,
        outcome="failed",
        error_code=str(reply.get("code") or "provider_error"),
        error_reason=str(reply.get("deliveryDisposition") or ""),
        error_message=str(reply.get("error") or "the provider refused"),
    )
