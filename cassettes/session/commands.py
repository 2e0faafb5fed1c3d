"""What each command of the engine, and each direct stimulus, does to host and provider (replay-runtime §2.4, §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cassettes.core.errors import Place, ReplayFailed, RepriseError
from cassettes.engine.engine import Command, CommandResult
from cassettes.host.host import NewOperation, NewSession, Submit
from cassettes.host.model import SessionRow, TurnRow
from cassettes.providers import registry
from cassettes.providers.ports import Answer, Prompt, Settle

if TYPE_CHECKING:
    from cassettes.session.session import AgentSession

JsonObject = dict[str, Any]


class Refused(RepriseError):
    """A command that cannot be carried out; becomes the `failed` result of the command."""

    code = "invalid_request"


class CommandRunner:
    """Carries out commands one at a time. Every command ends in exactly one `settle`."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self._direct: set[str] = set()  # commands that stand for a direct stimulus
        self._run = {
            "session/activate": self._activate,
            "queue/sendPrompt": self._send_prompt,
            "turn/cancel": self._cancel,
            "session/updateSettings": self._update_settings,
            "interaction/respond": self._respond,
            "session/reconcile": self._nothing_to_reconcile,
            "engine/reconcileWorkspace": self._nothing_to_reconcile,
        }

    def run(self, command: Command) -> None:
        """Start a command. What it needs of the provider may settle later."""
        runner = self._run.get(command.type)
        try:
            if runner is None:
                raise Refused(f"{command.type} is not supported", code="method_not_allowed")
            runner(command)
        except Refused as refused:
            self._fail(command, refused.code, refused.message)

    def stimulus(self, kind: str, session_id: str, payload: JsonObject, correlation_id: str) -> None:
        """Carry out a direct stimulus with the same steps as the command it stands for."""
        command = Command(
            type=_STIMULI.get(kind, kind),
            command_id=f"stimulus:{correlation_id or self._session.ids.new('stimulus')}",
            correlation_id=correlation_id,
            agent_session_id=session_id,
            timeout_ms=0,
            payload=_stimulus_payload(kind, payload),
        )
        runner = self._run.get(command.type)
        if runner is None:
            raise ReplayFailed(f"direct stimulus {kind!r} is not supported", code="stimulus_unsupported")
        self._direct.add(command.command_id)
        runner(command)

    # ------------------------------------------------------------------ sessions and prompts

    def _activate(self, command: Command) -> None:
        session = self._session
        payload = command.payload
        row = session.host.session(command.agent_session_id)
        content = _blocks(payload.get("runtimeContent") or payload.get("initialContent") or payload.get("content"))
        if row is None:
            if payload.get("mode", "new") == "existing":
                raise Refused("the session to resume is not known", code="workspace_agent_not_found")
            row = self._create(command)
        if content:
            self._submit(command, row, content)
            return

        def ready(settled: Settle) -> None:
            self._finish(command, settled, {"session": self._session_json(command.agent_session_id)})

        session.with_connection(row, ready)

    def _create(self, command: Command) -> SessionRow:
        session = self._session
        payload = command.payload
        target = str(payload.get("agentTargetId", ""))
        provider = registry.provider_for_target(target)
        settings = dict(payload.get("settings") or {})
        rail = payload.get("railPlacement") or {}
        session.committed(
            session.host.create_session(
                NewSession(
                    id=command.agent_session_id,
                    kind="root",
                    agent_target_id=target,
                    provider=provider.id,
                    settings=settings,
                    model=str(settings.get("model") or ""),
                    cwd=str(payload.get("cwd") or ""),
                    title=str(payload.get("title") or ""),
                    rail_section_kind=str(rail.get("kind") or "conversations"),
                    rail_project_path=str(rail.get("projectPath") or ""),
                    rail_section_key=str(rail.get("sectionKey") or payload.get("railSectionKey") or "conversations"),
                )
            )
        )
        row = session.host.session(command.agent_session_id)
        assert row is not None
        return row

    def _send_prompt(self, command: Command) -> None:
        row = self._known(command.agent_session_id)
        if command.payload.get("requiredSettingsPatch"):
            raise Refused("a prompt must not carry settings of its own when it is sent")
        content = _blocks(command.payload.get("runtimeContent") or command.payload.get("content"))
        self._submit(command, row, content, guidance=bool(command.payload.get("guidance")))

    def _submit(self, command: Command, row: SessionRow, content: list[JsonObject], *, guidance: bool = False) -> None:
        """Open a Turn with the prompt (or add guidance to the running one) and hand it to the provider."""
        session = self._session
        active = session.host.active_turn(row.id)
        if guidance and active is None:
            raise Refused("there is no running Turn to steer", code="agent.no_active_turn")
        if not guidance and active is not None:
            raise Refused("a Turn is still running", code="agent.turn_active")
        turn_id = active.id if guidance and active is not None else session.ids.new("turn")
        submit_id = str(command.payload.get("clientSubmitId") or command.command_id)
        display = command.payload.get("displayPrompt") or command.payload.get("initialDisplayPrompt")
        session.committed(
            session.host.submit(
                Submit(
                    session_id=row.id,
                    turn_id=turn_id,
                    client_submit_id=submit_id,
                    content=content,
                    display_prompt=str(display or ""),
                    guidance=guidance,
                    capability_refs=list(command.payload.get("capabilityRefs") or []),
                )
            )
        )
        settings = {**row.settings, **(command.payload.get("settings") or {})}
        prompt = Prompt(
            session_id=row.id,
            turn_id=turn_id,
            client_submit_id=submit_id,
            content=content,
            settings=settings,
            guidance=guidance,
        )

        def accepted(settled: Settle) -> None:
            if settled.outcome == "succeeded":
                session.committed(session.host.accept_submit(row.id, submit_id))
            else:
                session.committed(session.host.reject_submit(row.id, submit_id, settled.error_message))
            turn = session.host.turn(row.id, turn_id)
            result = {"kind": "turn", "turnId": turn_id, "session": self._session_json(row.id)}
            self._finish(command, settled, {**result, "turn": _json(turn)})

        def ready(settled: Settle) -> None:
            live = session.live_of(row.id)
            if settled.outcome != "succeeded" or live is None:
                accepted(settled if settled.outcome != "succeeded" else _lost())
                return
            session.ask(live, command.command_id, accepted, lambda adapter, token: adapter.send_prompt(prompt, token))

        session.with_connection(row, ready)

    # ------------------------------------------------------------------ a running Turn

    def _cancel(self, command: Command) -> None:
        session = self._session
        row = self._known(command.agent_session_id)
        turn_id = str(command.payload.get("turnId") or row.active_turn_id)
        turn = session.host.turn(row.id, turn_id)
        if turn is None:
            self._succeed(command, {"status": "not_found", "canceled": False, "turnId": turn_id})
            return
        if turn.phase == "settled":
            result = {"status": "already_settled", "canceled": False, "turnId": turn_id, "turn": _json(turn)}
            self._succeed(command, result)
            return
        live = session.live_of(row.id)
        if live is None:
            raise Refused("the provider of this Turn is not connected", code="transport_unavailable")
        operation = session.ids.new("operation")
        session.committed(
            session.host.begin_operation(
                NewOperation(id=operation, session_id=row.id, kind="cancel_turn", turn_id=turn_id)
            )
        )

        def ended(settled: Settle) -> None:
            if settled.outcome == "succeeded":
                session.committed(session.host.complete_operation(operation, {}))
            else:
                session.committed(session.host.fail_operation(operation, settled.error_message))
            after = session.host.turn(row.id, turn_id)
            canceled = after is not None and after.outcome == "canceled"
            status = "turn_canceled" if canceled else "already_settled"
            result = {"status": status, "canceled": canceled, "turnId": turn_id, "turn": _json(after)}
            self._finish(command, settled, {**result, "session": self._session_json(row.id)})

        session.ask(live, command.command_id, ended, lambda adapter, name: adapter.cancel_turn(row.id, turn_id, name))

    def _respond(self, command: Command) -> None:
        session = self._session
        row = self._known(command.agent_session_id)
        payload = command.payload
        live = session.live_of(row.id)
        if live is None:
            raise Refused("the provider of this session is not connected", code="transport_unavailable")
        answer = Answer(
            session_id=row.id,
            turn_id=str(payload.get("turnId") or ""),
            request_id=str(payload.get("requestId") or ""),
            action=str(payload.get("action") or ""),
            option_id=str(payload.get("optionId") or ""),
            payload=payload.get("payload"),
        )
        operation = session.ids.new("operation")
        session.committed(
            session.host.begin_operation(
                NewOperation(
                    id=operation,
                    session_id=row.id,
                    kind="interactive_response",
                    turn_id=answer.turn_id,
                    request_id=answer.request_id,
                    payload={"action": answer.action, "optionId": answer.option_id, "payload": answer.payload},
                )
            )
        )

        def answered(settled: Settle) -> None:
            if settled.outcome == "succeeded":
                session.committed(session.host.complete_operation(operation, settled.result))
            else:
                session.committed(session.host.fail_operation(operation, settled.error_message))
            self._finish(command, settled, {"requestId": answer.request_id, "turnId": answer.turn_id})

        session.ask(live, command.command_id, answered, lambda adapter, token: adapter.answer(answer, token))

    def _update_settings(self, command: Command) -> None:
        session = self._session
        row = self._known(command.agent_session_id)
        settings = dict(command.payload.get("settings") or {})

        def applied(settled: Settle) -> None:
            if settled.outcome == "succeeded":
                session.committed(session.host.update_settings(row.id, settings))
            result = {"agentSessionId": row.id, "session": self._session_json(row.id)}
            self._finish(command, settled, result)

        live = session.live_of(row.id)
        if live is None:
            applied(Settle(token=command.command_id))
            return
        session.ask(
            live,
            command.command_id,
            applied,
            lambda adapter, token: adapter.update_settings(row.id, settings, token),
        )

    def _nothing_to_reconcile(self, command: Command) -> None:
        """The canonical store is in this process; the engine has heard of every commit already."""
        self._succeed(command, {"session": self._session_json(command.agent_session_id)})

    # ------------------------------------------------------------------ results

    def _known(self, session_id: str) -> SessionRow:
        row = self._session.host.session(session_id)
        if row is None:
            raise Refused("the session is not known", code="workspace_agent_not_found")
        return row

    def _session_json(self, session_id: str) -> JsonObject:
        row = self._session.host.session(session_id)
        if row is None:
            return {}
        body: JsonObject = msgspec.to_builtins(row)
        return {**body, "agentSessionId": row.id, "workspaceId": self._session.engine.workspace_id}

    def _succeed(self, command: Command, result: JsonObject) -> None:
        self._settle(command, CommandResult(outcome="succeeded", result=result))

    def _fail(self, command: Command, code: str, message: str) -> None:
        self._settle(command, CommandResult(outcome="failed", error_code=code, error_message=message))

    def _finish(self, command: Command, settled: Settle, result: JsonObject) -> None:
        outcome = CommandResult(
            outcome=settled.outcome,
            error_code=settled.error_code,
            error_reason=settled.error_reason,
            error_message=settled.error_message,
            result=result if settled.outcome == "succeeded" else {},
        )
        self._settle(command, outcome)

    def _settle(self, command: Command, result: CommandResult) -> None:
        if command.command_id in self._direct:
            self._direct.discard(command.command_id)
            if result.outcome != "succeeded":
                raise ReplayFailed(
                    f"the direct stimulus failed: {result.error_message or result.error_code}",
                    code=result.error_code or "stimulus_failed",
                    place=Place(file="activity-events.jsonl"),
                )
            return
        self._session.settle(command, result)


_STIMULI = {
    "session.create": "session/activate",
    "session.send": "queue/sendPrompt",
    "turn.cancel": "turn/cancel",
    "interactive.response": "interaction/respond",
    "session.settings.update": "session/updateSettings",
}


def _stimulus_payload(kind: str, payload: JsonObject) -> JsonObject:
    if kind == "session.create":
        rest = {name: value for name, value in payload.items() if name not in {"content", "displayPrompt"}}
        content = payload.get("content") or payload.get("initialContent")
        display = payload.get("displayPrompt") or payload.get("initialDisplayPrompt")
        return {**rest, "mode": "new", "initialContent": content, "initialDisplayPrompt": display}
    if kind == "session.send":
        return {**payload, "guidance": payload.get("guidance") in (True, "steer")}
    return payload


def _lost() -> Settle:
    return Settle(
        token="", outcome="failed", error_code="transport_unavailable", error_message="the connection is gone"
    )


def _blocks(content: object) -> list[JsonObject]:
    """Prompt content as blocks; a plain string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _json(row: TurnRow | None) -> JsonObject:
    body: JsonObject = msgspec.to_builtins(row) if row is not None else {}
    return body
