"""Walks the records of one Claude Code conversation and builds its turns (transcript-formats §3.3–3.7)."""

from __future__ import annotations

import json
from typing import Any, Literal

from cassettes.transcripts.claude_results import read_result, tool_kind
from cassettes.transcripts.claude_text import UserRecord, command_output, content_blocks, image_block, read_user
from cassettes.transcripts.claude_tree import Node, text_of
from cassettes.transcripts.clock import Forward, epoch_ms
from cassettes.transcripts.lines import Record
from cassettes.transcripts.script import (
    CONTINUED,
    CallEnd,
    CallStart,
    Compaction,
    Guide,
    Notice,
    Report,
    Script,
    Step,
    Text,
    Turn,
    Usage,
)

JsonObject = dict[str, Any]

ENDS_OPEN = "The transcript ends before the turn does."
_QUIET_SYSTEM = {"stop_hook_summary", "turn_duration", "microcompact_boundary", "session_start", "away_summary"}
_TOLD_SYSTEM = {"api_refusal", "model_refusal_fallback", "model_refusal_no_fallback", "error", "informational"}
_KNOWN_ATTACHMENTS = {
    "agent_listing_delta", "agent_mention", "auto_mode", "auto_mode_exit", "batching_reminder_sent", "budget_usd",
    "command_permissions", "compact_file_reference", "critical_system_reminder", "date", "date_change",
    "deferred_tools_delta", "diagnostics", "directory", "dynamic_skill", "edited_text_file", "environment", "file",
    "goal_status", "hook_additional_context", "hook_blocking_error", "hook_cancelled", "hook_deferred_tool",
    "hook_error_during_execution", "hook_non_blocking_error", "hook_stopped_continuation", "hook_success",
    "hook_system_message", "invoked_skills", "max_turns_reached", "mcp_instructions_delta", "mcp_resource", "model",
    "nested_memory", "opened_file_in_ide", "output_style", "plan_file_reference", "plan_mode", "plan_mode_exit",
    "plan_mode_reentry", "prompt_snapshot", "queued_command", "read_truncation_notice", "remote_session_change",
    "selected_lines_in_ide", "session_context", "silent_turn_reminder", "skill_listing", "structured_output",
    "task_reminder", "task_status", "todo", "todo_reminder", "token_usage", "total_tokens_reminder",
    "ultra_effort_enter", "ultra_effort_exit", "workflow_keyword_request",
}  # fmt: skip


class Story:
    """The turns of one conversation, record by record."""

    def __init__(self, report: Report, script: Script, *, child: bool = False) -> None:
        self.turns: list[Turn] = []
        self.agents: dict[str, str] = {}  # agent id → call id
        self.background: set[str] = set()  # calls whose child goes on after their result
        self._report = report
        self._script = script
        self._child = child
        self._clock = Forward()
        self._turn: Turn | None = None
        self._waiting: list[Notice] = []  # said between turns; told in the next one
        self._command: tuple[str, int] | None = None  # a typed slash command that may start a turn
        self._calls: dict[str, CallStart] = {}
        self._results: dict[str, tuple[str, CallEnd]] = {}
        self._blocks: set[tuple[str, str, str]] = set()
        self._usage: dict[str, tuple[int, JsonObject]] = {}
        self._api_error: Notice | None = None
        self._error = ""  # of the last reply, when it was one of the harness

    def play(self, nodes: list[Node], queued: list[Record]) -> None:
        """Take the records in file order; `queued` are prompts that were taken back."""
        at = 0
        for node in nodes:
            while at < len(queued) and queued[at].line < node.line:
                self._lost_prompt(queued[at])
                at += 1
            self._take(node)
        for record in queued[at:]:
            self._lost_prompt(record)

    def finish(self) -> list[Turn]:
        """Close the last turn; turns in order, their times never going back."""
        turn = self._turn
        if turn is not None:
            answered = any(isinstance(step, Text | CallStart | Compaction) for step in turn.steps)
            open_calls = [call for call in self._open_calls() if call in turn.steps]
            last = next((step for step in reversed(turn.steps) if not isinstance(step, Notice)), None)
            ends_open = not answered or (open_calls and isinstance(last, CallStart)) or isinstance(last, CallEnd)
            if turn.outcome == "completed" and not self._error and ends_open and not self._child:
                turn.outcome = "failed"
                turn.error = ENDS_OPEN
                self._report.count("notes", "turn that does not end in the file")
            for notice in self._waiting:
                notice.at = max(turn.ended, *(step.at for step in turn.steps), turn.at)
                turn.steps.append(notice)
        self._close()
        unfinished = len(self._open_calls())
        if unfinished:
            self._report.count("notes", "call without result", unfinished)
        if self._clock.steps_back:
            self._report.count("notes", "time goes back", self._clock.steps_back)
        if self.turns:
            self._script.started = self.turns[0].at
        return self.turns

    def usage(self) -> Usage:
        """Tokens of all replies, each counted once with its last value."""
        total = Usage()
        for number, usage in self._usage.values():
            used = _usage_of(usage)
            total.add(used)
            if 0 <= number < len(self.turns):
                self.turns[number].usage.add(used)
        total.add(self._script.usage)
        return total

    def _open_calls(self) -> list[CallStart]:
        return [call for call_id, call in self._calls.items() if call_id not in self._results]

    def _take(self, node: Node) -> None:
        if node.type == "user":
            self._user(node, read_user(node.value))
        elif node.type == "assistant":
            self._assistant(node)
        elif node.type == "system":
            self._system(node)
        elif node.type == "attachment":
            self._attachment(node)
        elif node.type == "progress":
            data = node.value.get("data")
            agent = text_of(data.get("agentId")) if isinstance(data, dict) else ""
            if agent:
                self.agents.setdefault(agent, text_of(node.value.get("parentToolUseID")))

    # turns

    def _open(self, time: int, prompt: list[JsonObject], *, invented: bool = False) -> Turn:
        self._close()
        at = self._clock.at(time)
        turn = Turn(at=at, prompt=prompt, ended=at, invented=invented)
        for notice in self._waiting:
            notice.at = max(at, notice.at)
            turn.steps.append(notice)
        self._waiting = []
        self._command = None
        self._turn = turn
        self._error = ""
        self._api_error = None
        return turn

    def _close(self) -> None:
        turn = self._turn
        if turn is None:
            return
        if turn.outcome == "completed" and self._error:
            turn.outcome, turn.error = "failed", self._error
        elif (
            turn.outcome == "completed"
            and self._api_error is not None
            and not any(isinstance(step, Text | CallStart) for step in turn.steps)
        ):
            turn.outcome, turn.error = "failed", self._api_error.detail or self._api_error.title
        turn.ended = max([turn.ended, *(step.at for step in turn.steps)])
        self.turns.append(turn)
        self._turn = None

    def _running(self, time: int) -> Turn:
        """The turn that takes an answer; invented where no prompt stands before it."""
        if self._turn is None:
            if self._command is not None:
                text, typed = self._command
                return self._open(typed or time, [{"type": "text", "text": text}])
            self._report.count("notes", "turn without a prompt")
            return self._open(time, [{"type": "text", "text": CONTINUED}], invented=True)
        if self._command is not None and self._at_rest():
            text, typed = self._command
            return self._open(typed or time, [{"type": "text", "text": text}])
        if self._turn.outcome == "interrupted":
            self._turn.outcome = "completed"
        return self._turn

    def _at_rest(self) -> bool:
        turn = self._turn
        if turn is None:
            return True
        ids = {step.call_id for step in turn.steps if isinstance(step, CallStart)}
        return not any(call.call_id in ids for call in self._open_calls())

    def _add(self, step: Step, time: int) -> None:
        turn = self._running(time)
        turn.steps.extend(self._waiting)
        self._waiting = []
        turn.steps.append(step)

    def _say(self, notice: Notice, *, resting: bool = False) -> None:
        """A notice belongs to the running turn; said while the agent rests, it waits for what comes next."""
        if self._turn is None or (resting and self._at_rest()):
            self._waiting.append(notice)
        else:
            self._turn.steps.append(notice)

    # user records

    def _user(self, node: Node, record: UserRecord) -> None:
        if record.kind == "results":
            self._tool_results(node, record)
            if record.interrupted:
                self._interrupt(node.time, record.text)
        elif record.kind == "interrupted":
            self._interrupt(node.time, record.text)
        elif record.kind == "summary":
            self._report.count("folded", "compaction summary")
            turn = self._turn or (self.turns[-1] if self.turns else None)
            last = next((s for s in reversed(turn.steps) if isinstance(s, Compaction)), None) if turn else None
            if last is not None and not last.summary:
                last.summary = record.text
        elif record.kind == "command":
            if not self._is_compact_turn(record.text):
                self._report.count("folded", "slash command")
                self._command = (record.text, node.time)
        elif record.kind == "injected":
            self._injected(node, record)
        elif record.kind == "prompt":
            self._open(node.time, record.blocks)
            assert self._turn is not None
            self._turn.plan_mode = node.value.get("permissionMode") == "plan"

    def _is_compact_turn(self, text: str) -> bool:
        return text.startswith("/compact") and self._turn is not None and self._turn.text.startswith("/compact")

    def _injected(self, node: Node, record: UserRecord) -> None:
        self._report.count("folded", f"injected text / {record.why}")
        output = command_output(record.text)
        if output and self._command is not None:
            text, typed = self._command
            self._command = None
            self._waiting.append(
                Notice(at=self._clock.at(typed or node.time), kind="local_command", title=text, detail=output)
            )
        elif record.why == "task notification":
            self._say(
                Notice(at=self._clock.at(node.time), kind="task", title="Background task", detail=record.text.strip()),
                resting=True,
            )

    def _interrupt(self, time: int, text: str) -> None:
        turn = self._turn
        self._report.count("notes", "interrupted turn")
        if turn is None:
            return
        turn.outcome = "interrupted"
        turn.ended = max(turn.ended, self._clock.at(time))
        self._error = ""

    def _lost_prompt(self, record: Record) -> None:
        self._report.count("notes", "queued prompt that was taken back")
        at = self._clock.at(epoch_ms(record.value.get("timestamp")))
        self._say(
            Notice(at=at, kind="queued_prompt", title="Queued prompt, taken back", detail=str(record.value["content"]))
        )

    # replies

    def _assistant(self, node: Node) -> None:
        message = node.value.get("message")
        message = message if isinstance(message, dict) else {}
        reply = text_of(message.get("id")) or node.uuid
        model = text_of(message.get("model"))
        synthetic = model == "<synthetic>" or node.value.get("isApiErrorMessage") is True
        for number, block in enumerate(content_blocks(node.value)):
            self._block(node, reply, number, block, synthetic)
        if synthetic:
            return
        usage = message.get("usage")
        if isinstance(usage, dict):
            number = len(self.turns)
            self._usage[reply] = (self._usage[reply][0] if reply in self._usage else number, usage)
        if model and (reply, "", "model") not in self._blocks:
            self._blocks.add((reply, "", "model"))
            self._script.models[model] = self._script.models.get(model, 0) + 1
            self._script.model = self._script.model or model
        if self._turn is not None:
            self._turn.model = self._turn.model or model
            self._turn.effort = self._turn.effort or text_of(node.value.get("effort"))

    def _block(self, node: Node, reply: str, number: int, block: JsonObject, synthetic: bool) -> None:
        kind = text_of(block.get("type"))
        if kind == "text":
            self._text(node, reply, number, text_of(block.get("text")), synthetic)
        elif kind == "thinking":
            text = text_of(block.get("thinking"))
            if text.strip():
                self._words(node, reply, number, "reasoning", text)
            else:
                self._report.count("notes", "reasoning that the provider withheld")
        elif kind == "redacted_thinking":
            self._report.count("notes", "reasoning that the provider withheld")
        elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            self._call(node, block)
        elif kind.endswith("_tool_result"):
            self._server_result(node, block)
        elif kind == "image":
            self._words(node, reply, number, "assistant", str(image_block(block.get("source")).get("text", "[image]")))
        elif kind == "document":
            self._words(node, reply, number, "assistant", "[document]")
        elif kind == "fallback":
            detail = f"{_model_name(block.get('from'))} → {_model_name(block.get('to'))}"
            self._say(Notice(at=self._clock.at(node.time), kind="model", title="Model switched", detail=detail))
        else:
            self._report.count("unknown", f"block {kind or '(no type)'}"[:80])

    def _text(self, node: Node, reply: str, number: int, text: str, synthetic: bool) -> None:
        if not text.strip():
            return
        if not synthetic:
            self._words(node, reply, number, "assistant", text)
            self._error = ""
            return
        if text.strip() == "No response requested.":
            self._report.count("folded", "synthetic reply")
            return
        failed = node.value.get("isApiErrorMessage") is True or bool(node.value.get("error"))
        self._add(Notice(at=self._clock.at(node.time), kind="api_error" if failed else "notice", title=text), node.time)
        if failed:
            self._error = text

    def _words(self, node: Node, reply: str, number: int, kind: Literal["assistant", "reasoning"], text: str) -> None:
        if (reply, kind, text) in self._blocks:
            self._report.count("folded", "repeated block")
            return
        self._blocks.add((reply, kind, text))
        at = self._clock.at(node.time)
        self._add(Text(at=at, kind=kind, id=f"{node.uuid}:{number}" if number else node.uuid, text=text), node.time)

    def _call(self, node: Node, block: JsonObject) -> None:
        call_id = text_of(block.get("id")) or f"{node.uuid}:call"
        if call_id in self._calls:
            self._report.count("folded", "repeated call")
            return
        given = block.get("input")
        name = text_of(block.get("name")) or "tool"
        start = CallStart(
            at=self._clock.at(node.time),
            call_id=call_id,
            name=name,
            tool=tool_kind(name),
            input=given
            if isinstance(given, dict)
            else {"text": given if isinstance(given, str) else json.dumps(given)},
        )
        self._add(start, node.time)
        self._error = ""
        self._calls[call_id] = start
        if start.input.get("run_in_background") is True and start.tool == "agent":
            self.background.add(call_id)

    def _server_result(self, node: Node, block: JsonObject) -> None:
        content = block.get("content")
        plain = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        failed = isinstance(content, dict) and "error" in text_of(content.get("type"))
        self._result(node, {"tool_use_id": block.get("tool_use_id"), "content": plain, "is_error": failed}, None)

    def _tool_results(self, node: Node, record: UserRecord) -> None:
        rich = node.value.get("toolUseResult")
        for number, block in enumerate(record.results):
            self._result(node, block, rich if number == 0 else None)
        if record.blocks and not record.interrupted:
            detail = "\n".join(text_of(block.get("text")) for block in record.blocks)
            if detail.strip():
                at = self._clock.at(node.time)
                self._add(Notice(at=at, kind="message", title="Text beside a tool result", detail=detail), node.time)

    def _result(self, node: Node, block: JsonObject, rich: object) -> None:
        call_id = text_of(block.get("tool_use_id")) or text_of(node.value.get("sourceToolUseID"))
        at = self._clock.at(node.time)
        call = self._calls.get(call_id)
        if call is None:
            self._report.count("notes", "result without call")
            call_id = call_id or f"{node.uuid}:result"
            call = CallStart(at=at, call_id=call_id, name="(call not in the transcript)")
            self._add(call, node.time)
            self._calls[call_id] = call
        result = read_result(block, rich, call.name, call.input)
        if result.agent_id:
            self.agents.setdefault(result.agent_id, call_id)
        if isinstance(rich, dict) and (rich.get("isAsync") is True or rich.get("status") == "async_launched"):
            self.background.add(call_id)
        identity = json.dumps([result.output, result.failed], sort_keys=True)
        known = self._results.get(call_id)
        if known is not None:
            if known[0] == identity:
                self._report.count("folded", "repeated result")
            else:
                self._report.count("notes", "second result of a call")
                updates = known[1].output.setdefault("updates", [])
                updates.append(result.output)
            return
        end = CallEnd(
            at=at,
            call_id=call_id,
            output=result.output,
            failed=result.failed,
            error=result.error,
            changes=result.changes,
        )
        self._results[call_id] = (identity, end)
        owner = next((turn for turn in self.turns if any(step is call for step in turn.steps)), None)
        if owner is None or (owner is self.turns[-1] and self._turn is None):
            self._add_end(end, node.time, owner)
        else:  # a late result of an earlier turn: it belongs to its call
            self._report.count("notes", "result after its turn")
            end.at = owner.ended
            owner.steps.append(end)

    def _add_end(self, end: CallEnd, time: int, owner: Turn | None) -> None:
        turn = owner or self._turn
        if turn is None:
            turn = self._running(time)
        turn.steps.append(end)

    # the harness

    def _system(self, node: Node) -> None:
        value = node.value
        kind = text_of(value.get("subtype"))
        if kind == "compact_boundary":
            self._compaction(node)
        elif kind == "api_error":
            self._retry(node)
        elif kind == "local_command":
            text = text_of(value.get("content"))
            output = command_output(text)
            title = self._command[0] if self._command and output else "Local command"
            if output:
                self._command = None
                self._waiting.append(
                    Notice(at=self._clock.at(node.time), kind="local_command", title=title, detail=output)
                )
            else:
                record = read_user({"message": {"content": text}})
                if record.kind == "command" and not self._is_compact_turn(record.text):
                    self._command = (record.text, node.time)
        elif kind == "turn_duration":
            if self._turn is not None and self._turn.outcome == "completed":
                self._turn.ended = max(self._turn.ended, self._clock.at(node.time))
        elif kind in _TOLD_SYSTEM or (not kind and text_of(value.get("content"))):
            title = text_of(value.get("content")) or text_of(value.get("apiRefusalExplanation")) or _error_text(value)
            if title.strip():
                self._say(Notice(at=self._clock.at(node.time), kind=kind or "notice", title=title))
        elif kind in _QUIET_SYSTEM:
            self._report.count("folded", f"system / {kind}")
        else:
            self._report.count("unknown", f"system / {kind or '(none)'}"[:80])

    def _compaction(self, node: Node) -> None:
        details = node.value.get("compactMetadata")
        details = details if isinstance(details, dict) else {}
        trigger = text_of(details.get("trigger")) or text_of(node.value.get("trigger"))
        took = details.get("durationMs")
        started = node.time - int(took) if isinstance(took, int | float) and 0 < took < 3_600_000 else node.time
        if trigger == "manual" and not self._child and (self._turn is None or self._at_rest()):
            self._open(started, [{"type": "text", "text": "/compact"}])
            self._command = None
        turn = self._turn
        if turn is None:
            turn = self._running(node.time)
        began = self._clock.at(started)
        at = self._clock.at(node.time)
        turn.steps.append(Compaction(at=at, started=min(began, at), id=node.uuid, trigger=trigger))

    def _retry(self, node: Node) -> None:
        detail = _error_text(node.value)
        self._report.count("notes", "retried request")
        if self._api_error is not None:
            self._api_error.title = f"Request retried ({node.value.get('retryAttempt')})"
            self._api_error.detail = detail or self._api_error.detail
            return
        self._api_error = Notice(
            at=self._clock.at(node.time), kind="transport_retry", title="Request retried", detail=detail
        )
        self._say(self._api_error)

    def _attachment(self, node: Node) -> None:
        attachment = node.value.get("attachment")
        attachment = attachment if isinstance(attachment, dict) else {}
        kind = text_of(attachment.get("type"))
        if kind == "queued_command" and attachment.get("commandMode") in (None, "prompt"):
            prompt = attachment.get("prompt")
            record = read_user({"message": {"content": prompt}, "origin": attachment.get("origin")})
            if record.kind == "prompt" and self._turn is not None and not self._child:
                self._turn.steps.append(Guide(at=self._clock.at(node.time), content=record.blocks))
                return
            if record.kind == "prompt":
                self._open(node.time, record.blocks)
                return
        table: Literal["folded", "unknown"] = "folded" if kind in _KNOWN_ATTACHMENTS else "unknown"
        self._report.count(table, f"attachment / {kind or '(none)'}"[:80])


def _usage_of(usage: JsonObject) -> Usage:
    def number(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    cached = number("cache_read_input_tokens")
    return Usage(
        input_tokens=number("input_tokens") + number("cache_creation_input_tokens") + cached,
        output_tokens=number("output_tokens"),
        cached_tokens=cached,
    )


def _error_text(value: JsonObject) -> str:
    error = value.get("error")
    if isinstance(error, dict):
        for name in ("formatted", "message"):
            if text_of(error.get(name)):
                return text_of(error[name])
        return json.dumps(error, ensure_ascii=False)[:500]
    return text_of(error) or text_of(value.get("cause"))


def _model_name(value: object) -> str:
    if isinstance(value, dict):
        return text_of(value.get("model")) or "?"
    return text_of(value) or "?"
