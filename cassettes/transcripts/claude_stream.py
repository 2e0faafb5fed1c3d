"""Claude Code stream-json logs (`--output-format stream-json`): order is the order of lines (transcript-formats §4).

The records are those of a transcript in other clothes, so they are dressed as such and told by the same `Story`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from cassettes.transcripts.children import Child, place_children
from cassettes.transcripts.claude_story import Story
from cassettes.transcripts.claude_text import content_blocks
from cassettes.transcripts.claude_tree import Node, text_of
from cassettes.transcripts.clock import epoch_ms
from cassettes.transcripts.lines import MAX_LINE_BYTES, Record, read_records
from cassettes.transcripts.script import CONTINUED, Report, Script

JsonObject = dict[str, Any]

INCOMPLETE = "The log ends without a result."
_QUIET = {
    "hook_started", "hook_response", "task_started", "task_notification", "task_progress", "task_updated", "status",
    "state", "thinking_tokens", "compact_boundary", "notification", "init",
}  # fmt: skip


def read_claude_stream(
    path: Path, *, started: int, session_id: str = "", limit: int = MAX_LINE_BYTES
) -> tuple[Script, list[str]]:
    """One session of a log, and the ids of all its sessions.

    The log has few times: `started` (epoch ms) stands for the missing ones. `session_id` picks a session; without it
    the first one is read.
    """
    report = Report(format="claude-stream")
    records = list(read_records(path, report, limit=limit))
    sessions: list[str] = []
    for record in records:
        found = text_of(record.value.get("session_id"))
        if found and found not in sessions:
            sessions.append(found)
    chosen = session_id or (sessions[0] if sessions else path.stem)
    own = [record for record in records if text_of(record.value.get("session_id")) in ("", chosen)]
    others = len(records) - len(own)
    if others:
        report.count("folded", "record of another session", others)
    script = Script(provider="claude-code", session_id=chosen, report=report, session_ids=sessions)
    return _Log(script, report, started).read(own), sessions


class _Log:
    def __init__(self, script: Script, report: Report, started: int) -> None:
        self._script = script
        self._report = report
        self._time = started
        self._whole: set[str] = set()  # message ids that come as whole messages
        self._told_texts: set[str] = set()  # their texts
        self._partial: dict[str, dict[int, JsonObject]] = {}
        self._partial_id = ""

    def read(self, records: list[Record]) -> Script:
        nodes: list[Node] = []
        children: dict[str, list[Node]] = {}
        results = 0
        retries = 0
        for record in records:
            value = record.value
            message = value.get("message")
            if value.get("type") == "assistant" and isinstance(message, dict):
                self._whole.add(text_of(message.get("id")))
                self._told_texts.update(text_of(block.get("text")) for block in content_blocks(value))
        for record in records:
            value = record.value
            kind = text_of(value.get("type"))
            subtype = text_of(value.get("subtype"))
            self._time = max(self._time, epoch_ms(value.get("timestamp")))
            if kind in ("assistant", "user"):
                node = self._node(record, kind, len(nodes))
                parent = text_of(value.get("parent_tool_use_id"))
                (children.setdefault(parent, []) if parent else nodes).append(node)
            elif kind == "system" and subtype == "init":
                self._init(value)
            elif kind == "system" and subtype == "api_retry":
                retries += 1
                nodes.append(self._system(record, "api_error", len(nodes), value))
            elif kind == "system" and subtype == "compact_boundary":
                details = value.get("compact_metadata")
                trigger = details.get("trigger") if isinstance(details, dict) else ""
                extra = {"compactMetadata": {"trigger": trigger}}
                nodes.append(self._system(record, "compact_boundary", len(nodes), extra))
            elif kind == "stream_event":
                nodes.extend(self._event(record, value.get("event"), len(nodes)))
            elif kind == "result":
                results += 1
                self._result(nodes, record, value)
            elif kind == "rate_limit_event" or (kind == "system" and subtype in _QUIET):
                self._report.count("folded", f"{kind} {subtype}".strip())
            elif kind in ("control_request", "control_response", "control_cancel_request", "keep_alive"):
                self._report.count("folded", kind)
            else:
                self._report.count("unknown", f"record {kind or '(no type)'} {subtype}".strip()[:80])
        return self._told(nodes, children, results)

    def _told(self, nodes: list[Node], children: dict[str, list[Node]], results: int) -> Script:
        story = Story(self._report, self._script)
        story.play(nodes, [])
        turns = story.finish()
        for turn in turns:
            if turn.text == CONTINUED and turn.invented:
                self._report.count("notes", "the log holds no prompt")
        if turns and not results and turns[-1].outcome == "completed":
            turns[-1].outcome, turns[-1].error = "failed", INCOMPLETE
            self._report.count("notes", "log without a result")
        self._script.turns = turns
        found = []
        for call_id, inner in children.items():
            told = Story(self._report, self._script, child=True)
            told.play(inner, [])
            steps = [step for turn in told.finish() for step in turn.steps]
            found.append(Child(key=f"child-of-{call_id}", prompt="", steps=steps, call_id=call_id))
        place_children(turns, found, self._report)
        self._script.usage = story.usage()
        return self._script

    def _init(self, value: JsonObject) -> None:
        script = self._script
        script.cwd = script.cwd or text_of(value.get("cwd"))
        script.model = script.model or text_of(value.get("model"))
        script.permission = script.permission or text_of(value.get("permissionMode"))
        script.version = text_of(value.get("claude_code_version")) or script.version

    def _node(self, record: Record, kind: str, index: int) -> Node:
        value = dict(record.value)
        if "tool_use_result" in value:
            value["toolUseResult"] = value.pop("tool_use_result")
        if value.get("isSynthetic") is True:
            value["isMeta"] = True
        uuid = text_of(value.get("uuid")) or f"line-{record.line}"
        return Node(
            index=index,
            line=record.line,
            type=kind,
            uuid=uuid,
            parent_uuid="",
            logical_parent="",
            sidechain=False,
            agent_id="",
            time=self._time,
            value=value,
        )

    def _system(self, record: Record, subtype: str, index: int, value: JsonObject) -> Node:
        given: JsonObject = {
            "subtype": subtype,
            "error": value.get("error"),
            "retryAttempt": value.get("attempt"),
            **{name: value[name] for name in ("compactMetadata", "content") if name in value},
        }
        node = self._node(record, "system", index)
        node.value = given
        return node

    def _event(self, record: Record, event: object, index: int) -> list[Node]:
        """Partial messages: used only where the whole message never comes."""
        if not isinstance(event, dict):
            return []
        kind = text_of(event.get("type"))
        if kind == "message_start":
            message = event.get("message")
            self._partial_id = text_of(message.get("id")) if isinstance(message, dict) else ""
            self._partial[self._partial_id] = {}
        blocks = self._partial.setdefault(self._partial_id, {})
        number = event.get("index")
        if kind == "content_block_start" and isinstance(number, int) and isinstance(event.get("content_block"), dict):
            blocks[number] = dict(event["content_block"])
        elif kind == "content_block_delta" and isinstance(number, int) and isinstance(event.get("delta"), dict):
            block = blocks.setdefault(number, {"type": "text", "text": ""})
            delta = event["delta"]
            for name in ("text", "thinking"):
                if isinstance(delta.get(name), str):
                    block[name] = text_of(block.get(name)) + delta[name]
            if isinstance(delta.get("partial_json"), str):
                block["partial"] = text_of(block.get("partial")) + delta["partial_json"]
                with suppress(ValueError):
                    block["input"] = json.loads(block["partial"])
        elif kind == "message_stop" and self._partial_id not in self._whole and blocks:
            content = [blocks[at] for at in sorted(blocks) if blocks[at].get("text", True) not in self._told_texts]
            value: JsonObject = {"type": "assistant", "message": {"id": self._partial_id, "content": content}}
            return [self._node(Record(record.line, value), "assistant", index)]
        self._report.count("folded", "stream event")
        return []

    def _result(self, nodes: list[Node], record: Record, value: JsonObject) -> None:
        """The end of a turn; its text repeats the last reply. Only a failure is told."""
        failed = value.get("is_error") is True or text_of(value.get("subtype")).startswith("error")
        self._report.count("folded", "result")
        if not failed:
            return
        text = text_of(value.get("result")) or "; ".join(str(error) for error in value.get("errors") or [])
        text = text or text_of(value.get("subtype"))
        said: JsonObject = {
            "type": "assistant",
            "isApiErrorMessage": True,
            "message": {
                "id": f"result-{record.line}",
                "model": "<synthetic>",
                "content": [{"type": "text", "text": text}],
            },
        }
        nodes.append(self._node(Record(record.line, said), "assistant", len(nodes)))
