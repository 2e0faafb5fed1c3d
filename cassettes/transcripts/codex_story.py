"""Walks the records of one Codex rollout and builds its turns (transcript-formats §5).

A rollout writes most things twice: as `response_item` (what the model saw) and as `event_msg`. Items give texts and
calls, events give turns, ends and details; within a turn an event whose text no item repeats is kept as its own.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import msgspec

from cassettes.transcripts.clock import Forward, epoch_ms
from cassettes.transcripts.codex_calls import (
    Call,
    Output,
    changes_in_patch,
    changes_of,
    command_line,
    data_image,
    read_call,
    read_output,
)
from cassettes.transcripts.codex_items import (
    content_blocks,
    difference,
    event_call,
    integer,
    is_context,
    other_item,
    plain,
    text_of,
    texts_of,
    usage_of,
)
from cassettes.transcripts.lines import Record
from cassettes.transcripts.script import (
    CONTINUED,
    CallEnd,
    CallStart,
    Compaction,
    Guide,
    Notice,
    Outcome,
    Report,
    Script,
    Step,
    Text,
    Turn,
    Usage,
)

JsonObject = dict[str, Any]

ENDS_OPEN = "The transcript ends before the turn does."
_REQUEST_MARK = "## My request for Codex:"
_CALLS = {
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "image_generation_call",
    "tool_search_call",
}  # fmt: skip
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output"}
_QUIET_ITEMS = {"ghost_snapshot", "additional_tools", "compaction", "compaction_trigger", "context_compaction"}
_QUIET_EVENTS = {
    "thread_settings_applied", "thread_goal_updated", "guardian_assessment", "sub_agent_activity",
    "exec_command_begin", "exec_command_output_delta", "patch_apply_begin", "mcp_tool_call_begin", "web_search_begin",
    "turn_diff", "plan_update", "session_configured", "account/rateLimits/updated", "agent_message_delta",
    "agent_reasoning_section_break", "collab_agent_spawn_begin", "collab_agent_interaction_begin", "item_started",
    "collab_waiting_begin", "collab_close_begin", "terminal_interaction", "mcp_startup_complete", "deprecation_notice",
}  # fmt: skip
_OPEN_EVENTS = {"task_started", "turn_started"}
_DONE_EVENTS = {"task_complete", "turn_complete"}


class _State(msgspec.Struct, kw_only=True):
    """A call and what is known of its end."""

    start: CallStart
    turn: Turn
    end: CallEnd | None = None
    has_event: bool = False
    patch: str = ""


class Rollout:
    """The turns of one rollout, record by record."""

    def __init__(self, report: Report, script: Script, *, has_prompt_events: bool, child: bool = False) -> None:
        self.turns: list[Turn] = []
        self.spawned: dict[str, str] = {}  # child thread → call id
        self._report = report
        self._script = script
        self._prompt_events = has_prompt_events
        self._child = child
        self._clock = Forward()
        self._turn: Turn | None = None
        self._task: tuple[str, int] | None = None  # a turn that began and has no prompt yet
        self._task_id = ""
        self._rested = False
        self._sources: list[tuple[int, str, str]] = []  # (index in steps, source, normalised text)
        self._items: list[JsonObject] = []  # user items that no event has claimed yet
        self._waiting: list[Notice] = []
        self._calls: dict[str, _State] = {}
        self._error = ""
        self._compacted = 0
        self._base: Usage | None = None
        self._total: Usage | None = None
        self._counted = Usage()
        self._model = ""
        self._effort = ""
        self._plan = False
        self._replies: set[str] = set()

    def inherit(self, record: Record) -> None:
        """A record of the parent session: only its settings and its token total matter."""
        value = record.value
        payload = value["payload"]
        if value.get("type") == "turn_context":
            self._context(payload)
        elif payload.get("type") == "token_count":
            self._tokens(payload)
            self._base = self._total

    def take(self, record: Record) -> None:
        """One record."""
        value = record.value
        payload = value["payload"]
        time = epoch_ms(value.get("timestamp"))
        kind = value.get("type")
        if kind == "response_item":
            self._item(time, payload)
        elif kind == "event_msg":
            self._event(time, payload)
        elif kind == "turn_context":
            self._context(payload)
        elif kind == "compacted":
            self._compaction(time, time, text_of(payload.get("message")), "item")

    def finish(self) -> list[Turn]:
        """Close the last turn."""
        turn = self._turn
        if turn is not None:
            last = next((step for step in reversed(turn.steps) if not isinstance(step, Notice)), None)
            if (
                turn.outcome == "completed"
                and not self._error
                and not self._child
                and not isinstance(last, Text | Compaction)
            ):
                turn.outcome, turn.error = "failed", ENDS_OPEN
                self._report.count("notes", "turn that does not end in the file")
            turn.steps.extend(self._waiting)
        self._close("completed")
        missing = sum(1 for state in self._calls.values() if state.end is None)
        if missing:
            self._report.count("notes", "call without result", missing)
        if self._clock.steps_back:
            self._report.count("notes", "time goes back", self._clock.steps_back)
        if self.turns:
            started = self._script.started or self.turns[0].at
            self._script.started = min(started, self.turns[0].at)
        if self._total is not None:
            self._script.usage.add(difference(self._total, self._base or Usage()))
        return self.turns

    # turns

    def _open(self, time: int, prompt: list[JsonObject], *, invented: bool = False) -> Turn:
        self._close("completed")
        began = time
        if self._task is not None:
            self._task_id, started = self._task
            began = min(started, time) if started else time
            self._task = None
        at = max(self._clock.now if self.turns else 0, began) or self._clock.at(time)
        turn = Turn(at=at, prompt=prompt, ended=at, invented=invented, provider_turn_id=self._task_id)
        turn.model, turn.effort, turn.plan_mode = self._model, self._effort, self._plan
        text = turn.text
        if text.lstrip().startswith("# Context from my IDE setup:") and _REQUEST_MARK in text:
            turn.display = text.split(_REQUEST_MARK, 1)[1].strip()
        for notice in self._waiting:
            notice.at = max(at, notice.at)
            turn.steps.append(notice)
        self._waiting = []
        self._sources = []
        self._error = ""
        self._rested = False
        self._turn = turn
        self._clock.at(at)
        return turn

    def _close(self, outcome: Outcome, error: str = "", time: int = 0) -> None:
        turn = self._turn
        if turn is None:
            return
        if time:
            turn.ended = max(turn.ended, self._clock.at(time))
        self._drop_doubles(turn)
        if turn.outcome == "completed":
            turn.outcome, turn.error = outcome, error or turn.error
            if outcome == "completed" and self._error:
                turn.outcome, turn.error = "failed", self._error
        turn.ended = max([turn.ended, *(step.at for step in turn.steps)])
        if self._total is not None:
            turn.usage = difference(difference(self._total, self._base or Usage()), self._counted)
            self._counted.add(turn.usage)
        self.turns.append(turn)
        self._turn = None
        self._task_id = ""

    def _drop_doubles(self, turn: Turn) -> None:
        """Leave out each event whose text an item of the same turn repeats."""
        items = Counter(text for _, source, text in self._sources if source == "item")
        dropped: set[int] = set()
        for index, source, text in self._sources:
            if source == "event" and items[text] > 0:
                items[text] -= 1
                dropped.add(index)
        turn.steps = [step for index, step in enumerate(turn.steps) if index not in dropped]
        self._sources = []

    def _running(self, time: int, invented: str = CONTINUED) -> Turn:
        if self._turn is None:
            self._report.count("notes", "turn without a prompt")
            return self._open(time, [{"type": "text", "text": invented}], invented=True)
        return self._turn

    def _add(self, time: int, step: Step, source: str = "", text: str = "") -> None:
        turn = self._running(time)
        if self._waiting:
            turn.steps.extend(self._waiting)
            self._waiting = []
        turn.steps.append(step)
        if source:
            self._sources.append((len(turn.steps) - 1, source, text))

    def _say(self, notice: Notice) -> None:
        if self._turn is None:
            self._waiting.append(notice)
        else:
            self._turn.steps.append(notice)

    def _context(self, payload: JsonObject) -> None:
        self._model = text_of(payload.get("model")) or self._model
        self._effort = text_of(payload.get("effort")) or text_of(payload.get("reasoning_effort")) or self._effort
        mode = payload.get("collaboration_mode")
        self._plan = isinstance(mode, dict) and mode.get("mode") == "plan"
        self._script.model = self._script.model or self._model
        self._script.effort = self._script.effort or self._effort
        if not self._script.permission:
            sandbox = payload.get("sandbox_policy")
            name = (text_of(sandbox.get("type")) or text_of(sandbox.get("mode"))) if isinstance(sandbox, dict) else ""
            name = name.replace("-", "").lower()
            known = {"readonly": "read-only", "workspacewrite": "auto", "dangerfullaccess": "full-access"}
            self._script.permission = known.get(name, "")
        if self._turn is not None:
            self._turn.model = self._turn.model or self._model
            self._turn.effort = self._turn.effort or self._effort

    # items

    def _item(self, time: int, payload: JsonObject) -> None:
        kind = text_of(payload.get("type"))
        if kind == "message":
            self._message(time, payload)
        elif kind == "reasoning":
            self._reasoning(time, payload)
        elif kind in _CALLS:
            self._call(time, payload)
        elif kind in _OUTPUTS:
            value = payload.get("output", payload.get("tools"))
            self._output(time, text_of(payload.get("call_id")), read_output(value))
        elif kind == "agent_message":
            self._report.count("folded", "message between agents")
        elif kind in _QUIET_ITEMS:
            self._report.count("folded", f"item {kind}")
        else:
            self._report.count("unknown", f"item {kind or '(no type)'}"[:80])

    def _message(self, time: int, payload: JsonObject) -> None:
        role = payload.get("role")
        blocks, text = content_blocks(payload.get("content"))
        if role == "assistant":
            if text.strip():
                name = text_of(payload.get("id")) or f"message-{time}-{len(self._sources)}"
                self._words(time, "assistant", name, text, "item")
                if self._model and name not in self._replies:
                    self._replies.add(name)
                    self._script.models[self._model] = self._script.models.get(self._model, 0) + 1
        elif role == "user":
            if is_context(payload, text):
                self._report.count("folded", "injected context")
            elif self._prompt_events:
                self._items.append({"text": plain(text), "blocks": blocks})
            else:
                self._prompt(time, blocks)
        else:
            self._report.count("folded", f"message of {role}")

    def _reasoning(self, time: int, payload: JsonObject) -> None:
        parts = texts_of(payload.get("summary")) or texts_of(payload.get("content"))
        if not parts:
            self._report.count("notes", "reasoning that the provider withheld")
            return
        name = text_of(payload.get("id")) or f"reasoning-{time}-{len(self._sources)}"
        for number, part in enumerate(parts):
            self._words(time, "reasoning", f"{name}:{number}" if number else name, part, "item")

    def _words(self, time: int, kind: Literal["assistant", "reasoning"], name: str, text: str, source: str) -> None:
        if self._turn is None and self._task is None and self.turns and self._repeats_last(kind, text):
            return
        step = Text(at=self._clock.at(time), kind=kind, id=name, text=text)
        self._add(time, step, source, f"{kind}:{plain(text)}")
        if kind == "assistant":
            self._error = ""

    def _repeats_last(self, kind: str, text: str) -> bool:
        """An item that the file writes after the end of its turn repeats the event before it."""
        flat = plain(text)
        return any(
            isinstance(step, Text) and step.kind == kind and plain(step.text) == flat for step in self.turns[-1].steps
        )

    def _call(self, time: int, payload: JsonObject) -> None:
        call = read_call(payload)
        call_id = text_of(payload.get("call_id")) or text_of(payload.get("id")) or f"call-{time}-{len(self._calls)}"
        state = self._start(time, call_id, call)
        if payload.get("type") in ("web_search_call", "image_generation_call") and state.end is None:
            failed = payload.get("status") == "failed"
            self._end(time, call_id, Output(text="", failed=failed), self._image_output(payload))

    def _image_output(self, payload: JsonObject) -> JsonObject:
        result = payload.get("result")
        if payload.get("type") == "image_generation_call" and isinstance(result, str) and result:
            return {"imageBytes": len(result) * 3 // 4}
        return {}

    def _start(self, time: int, call_id: str, call: Call) -> _State:
        known = self._calls.get(call_id)
        if known is not None:
            return known
        at = self._clock.at(time)
        start = CallStart(at=at, call_id=call_id, name=call.name, tool=call.tool, input=call.input)
        self._add(time, start)
        assert self._turn is not None
        state = _State(start=start, turn=self._turn, patch=call.patch)
        self._calls[call_id] = state
        self._error = ""
        return state

    def _output(self, time: int, call_id: str, output: Output) -> None:
        if call_id not in self._calls:
            self._report.count("notes", "result without call")
            missing = Call(name="(call not in the transcript)", tool="other", input={})
            self._start(time, call_id or f"call-{time}-{len(self._calls)}", missing)
        self._end(time, call_id, output, {})

    def _end(self, time: int, call_id: str, output: Output, extra: JsonObject) -> CallEnd:
        state = self._calls[call_id]
        given: JsonObject = dict(extra)
        if output.text:
            given["stdout" if state.start.tool == "command" else "text"] = output.text
        if output.exit_code is not None:
            given["exitCode"] = output.exit_code
        if output.images:
            given["content"] = output.images
        if state.end is None:
            at = self._clock.at(time)
            end = CallEnd(at=at, call_id=call_id, output=given, failed=output.failed)
            state.end = end
            if state.turn is self._turn:
                self._add(time, end)
            else:  # the call's turn is over: the result belongs to its call
                self._report.count("notes", "result after its turn")
                end.at = state.turn.ended
                state.turn.steps.append(end)
        else:
            for name, value in given.items():
                state.end.output.setdefault(name, value)
            if not state.has_event:
                state.end.failed = state.end.failed or output.failed
        end = state.end
        if end.failed and not end.error:
            end.error = (output.text or str(given.get("stderr", "")))[:2000]
        if state.patch and not end.changes and not end.failed:
            end.changes = changes_in_patch(state.patch)
        return end

    # events

    def _event(self, time: int, payload: JsonObject) -> None:
        kind = text_of(payload.get("type"))
        if kind in _OPEN_EVENTS:
            self._close("completed")
            self._task = (text_of(payload.get("turn_id")), time)
        elif kind in _DONE_EVENTS:
            error = payload.get("error")
            message = text_of(error.get("message")) if isinstance(error, dict) else text_of(error)
            self._ended(time, "failed" if message else "completed", message)
        elif kind == "turn_aborted":
            if payload.get("reason") == "review_ended":
                self._ended(time, "completed", "")
            else:
                self._report.count("notes", "interrupted turn")
                self._ended(time, "interrupted", "")
        elif kind == "user_message":
            self._prompt_event(time, payload)
        elif kind == "agent_message":
            self._words(
                time, "assistant", f"event-{time}-{len(self._sources)}", text_of(payload.get("message")), "event"
            )
        elif kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            text = text_of(payload.get("text"))
            if text.strip():
                self._words(time, "reasoning", f"event-{time}-{len(self._sources)}", text, "event")
        elif kind == "token_count":
            self._tokens(payload)
        elif kind == "item_completed":
            item = payload.get("item")
            if isinstance(item, dict):
                self._item_completed(time, payload, item)
        elif kind == "context_compacted":
            self._compaction(time, time, "", "event")
        elif kind in ("error", "stream_error", "warning"):
            self._trouble(time, kind, payload)
        elif kind in ("entered_review_mode", "exited_review_mode"):
            self._review(time, kind == "entered_review_mode", payload)
        elif kind == "thread_rolled_back":
            self._waiting.append(
                Notice(at=self._clock.at(time), kind="rollback", title=f"{payload.get('num_turns')} turn(s) taken back")
            )
        elif kind == "undo_completed":
            title = "Undo" if payload.get("success") is not False else "Undo failed"
            notice = Notice(at=self._clock.at(time), kind="undo", title=title, detail=text_of(payload.get("message")))
            self._waiting.append(notice)
        elif kind.endswith("_end") or kind.startswith("dynamic_tool_call") or kind == "view_image_tool_call":
            self._end_event(time, kind, payload)
        elif kind == "thread_name_updated" or kind in _QUIET_EVENTS:
            self._report.count("folded", f"event {kind}")
        else:
            self._report.count("unknown", f"event {kind or '(no type)'}"[:80])

    def _ended(self, time: int, outcome: Outcome, error: str) -> None:
        if self._turn is None and self._task is not None:
            self._running(time)
        self._close(outcome, error, time)
        self._task = None

    def _prompt_event(self, time: int, payload: JsonObject) -> None:
        text = text_of(payload.get("message"))
        blocks: list[JsonObject] = [{"type": "text", "text": text}] if text.strip() else []
        images = payload.get("images")
        for url in images if isinstance(images, list) else []:
            blocks.append(data_image(url) or {"type": "text", "text": f"[image: {str(url)[:200]}]"})
        local = payload.get("local_images")
        for path in local if isinstance(local, list) else []:
            blocks.append({"type": "text", "text": f"[image: {str(path)[:200]}]"})
        self._prompt(time, self._claimed(text, blocks))

    def _claimed(self, text: str, blocks: list[JsonObject]) -> list[JsonObject]:
        """The blocks of the user item that says the same, because it holds the images."""
        flat = plain(text)
        for item in self._items:
            if item["text"] == flat or (flat and flat in item["text"]):
                self._items.remove(item)
                if any(block["type"] == "image" for block in item["blocks"]):
                    texts = [block for block in blocks if block["type"] == "text" and block["text"] == text]
                    return texts + [block for block in item["blocks"] if block["type"] == "image"]
                break
        return blocks

    def _prompt(self, time: int, blocks: list[JsonObject]) -> None:
        if not blocks:
            return
        turn = self._turn
        if turn is not None and turn.invented and self._task_id:
            turn.prompt, turn.invented = blocks, False  # the turn worked before it took its prompt
            return
        if self._turn is not None and self._task_id and self._task is None:
            self._turn.steps.append(Guide(at=self._clock.at(time), content=blocks))
            return
        self._open(time, blocks)

    def _item_completed(self, time: int, payload: JsonObject, item: JsonObject) -> None:
        kind = text_of(item.get("type"))
        began = epoch_ms(payload.get("started_at_ms")) or time
        ended = epoch_ms(payload.get("completed_at_ms")) or time
        name = text_of(item.get("id"))
        if kind == "UserMessage":
            blocks, text = content_blocks(item.get("content"))
            self._prompt(time, self._claimed(text, blocks))
        elif kind == "AgentMessage":
            _, text = content_blocks(item.get("content"))
            if text.strip():
                self._words(ended, "assistant", name, text, "event")
        elif kind == "Reasoning":
            parts = item.get("summary_text") or item.get("raw_content")
            for part in parts if isinstance(parts, list) else []:
                if isinstance(part, str) and part.strip():
                    self._words(ended, "reasoning", name, part, "event")
        elif kind == "Plan":
            self._words(ended, "assistant", name, text_of(item.get("text")), "event")
        elif kind == "ContextCompaction":
            self._compaction(began, ended, "", "event")
        elif kind in ("EnteredReviewMode", "ExitedReviewMode"):
            self._review(ended, kind == "EnteredReviewMode", item)
        else:
            self._call_item(began, ended, kind, name, item)

    def _call_item(self, began: int, ended: int, kind: str, name: str, item: JsonObject) -> None:
        status = text_of(item.get("status"))
        failed = status in ("failed", "declined") or bool(item.get("error")) or item.get("success") is False
        if kind == "CommandExecution":
            parts = [part for part in item.get("command") or [] if isinstance(part, str)]
            call = Call(name="exec_command", tool="command", input={"command": command_line(parts)})
            text = text_of(item.get("aggregated_output"))
            output = Output(text=text, exit_code=integer(item.get("exit_code")), failed=failed)
            self._detail(began, ended, name, call, output, {})
        elif kind == "FileChange":
            changes = changes_of(item.get("changes"))
            call = Call(name="apply_patch", tool="patch", input={"files": len(changes)})
            text = text_of(item.get("stdout")) or text_of(item.get("stderr"))
            end = self._detail(began, ended, name, call, Output(text=text, failed=failed), {})
            if not failed and changes:
                end.changes = changes
        elif kind == "CollabAgentToolCall":
            call = Call(
                name=text_of(item.get("tool")) or "agent", tool="agent", input={"prompt": text_of(item.get("prompt"))}
            )
            self._detail(began, ended, name, call, Output(text="", failed=failed), {})
            for thread in item.get("receiver_thread_ids") or []:
                if isinstance(thread, str) and item.get("tool") in ("spawn_agent", "spawnAgent"):
                    self.spawned.setdefault(thread, name)
        elif kind in ("McpToolCall", "DynamicToolCall", "WebSearch", "ImageView", "ImageGeneration"):
            call, output, extra = other_item(kind, item, failed)
            self._detail(began, ended, name, call, output, extra)
        elif kind in ("HookPrompt", "SubAgentActivity"):
            self._report.count("folded", f"item {kind}")
        else:
            self._report.count("unknown", f"item {kind or '(no type)'}"[:80])

    def _detail(self, began: int, ended: int, name: str, call: Call, output: Output, extra: JsonObject) -> CallEnd:
        """The event of a call: it ends the call, or tells more about the end that is known."""
        if name not in self._calls:
            self._start(began, name, call)
        state = self._calls[name]
        state.has_event = True
        return self._end(ended, name, output, extra)

    def _end_event(self, time: int, kind: str, payload: JsonObject) -> None:
        call_id = text_of(payload.get("call_id")) or text_of(payload.get("callId"))
        if not call_id:
            self._report.count("folded", f"event {kind} without a call")
            return
        if kind == "dynamic_tool_call_request":
            given = payload.get("arguments")
            tool = Call(name=text_of(payload.get("tool")), tool="other", input=given if isinstance(given, dict) else {})
            self._start(time, call_id, tool)
            return
        call, output, extra = event_call(kind, payload)
        end = self._detail(time, time, call_id, call, output, extra)
        if kind == "patch_apply_end" and not output.failed:
            end.changes = changes_of(payload.get("changes")) or end.changes
        if kind == "collab_agent_spawn_end" and text_of(payload.get("new_thread_id")):
            self.spawned.setdefault(text_of(payload["new_thread_id"]), call_id)

    def _compaction(self, began: int, ended: int, summary: str, source: str) -> None:
        """One mark for a compaction, though the record, the event and the item all tell of it."""
        turn = self._turn
        last = next((step for step in reversed(turn.steps) if isinstance(step, Compaction)), None) if turn else None
        if last is None and turn is None and self._task is None and self.turns:
            last = next((step for step in reversed(self.turns[-1].steps[-3:]) if isinstance(step, Compaction)), None)
        if last is not None and abs(ended - last.at) < 2000 and (last.trigger != source or source == "event"):
            last.summary = last.summary or summary
            last.started = min(last.started, max(began, turn.at if turn else last.started))
            return
        if turn is not None and turn.invented and all(isinstance(step, Text) for step in turn.steps):
            turn.prompt = [{"type": "text", "text": "/compact"}]
            summary = "\n".join(step.text for step in turn.steps if isinstance(step, Text)) or summary
            turn.steps = []
            self._sources = []
        if turn is None:
            turn = self._running(began, "/compact" if self._task is not None else CONTINUED)
        started = self._clock.at(began)
        at = self._clock.at(ended)
        self._compacted += 1
        self._add(
            ended,
            Compaction(at=at, started=started, id=f"compaction-{self._compacted}", summary=summary, trigger=source),
        )

    def _review(self, time: int, entered: bool, payload: JsonObject) -> None:
        hint = text_of(payload.get("user_facing_hint"))
        if entered and self._turn is None:
            self._running(time, f"(code review: {hint or 'changes'})")
        review = payload.get("review_output")
        detail = text_of(review.get("overall_explanation")) if isinstance(review, dict) else hint
        title = "Code review started." if entered else "Code review finished."
        self._say(Notice(at=self._clock.at(time), kind="review", title=title, detail=detail))

    def _trouble(self, time: int, kind: str, payload: JsonObject) -> None:
        error = payload.get("error")
        message = text_of(payload.get("message")) or (text_of(error.get("message")) if isinstance(error, dict) else "")
        if kind == "error":
            self._error = message or "The provider reported an error."
        title = {"error": "Error", "stream_error": "Request retried", "warning": "Warning"}[kind]
        name = {"error": "error", "stream_error": "transport_retry", "warning": "warning"}[kind]
        self._say(Notice(at=self._clock.at(time), kind=name, title=title, detail=message))

    def _tokens(self, payload: JsonObject) -> None:
        info = payload.get("info")
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if isinstance(total, dict):
            self._total = usage_of(total)
