"""What is open in one Turn, and the events that open, grow and close it (provider-adapters §3.2). Adapters share it."""

from __future__ import annotations

from typing import Any

import msgspec

from cassettes.core.file_changes import normal_file_changes
from cassettes.host.events import AgentEvent, CallEvent, Lineage, MessageEvent, TurnEvent

JsonObject = dict[str, Any]
WITHOUT_RESULT = "turn_completed_without_call_result"
_SOURCE = {"contentMode": "snapshot", "source": "runtime"}


class OpenText(msgspec.Struct):
    """A text that grows: assistant text or reasoning."""

    message_id: str
    kind: str  # text, reasoning
    text: str = ""
    told: bool = False


class OpenTurn:
    """One Turn of one session while its provider works on it."""

    def __init__(self, session_id: str, turn_id: str, lineage: Lineage | None = None) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.lineage = lineage
        self.provider_turn_id = ""
        self.confirmed = False  # the provider itself named its Turn
        self.ended = False
        self.canceled = False  # a person wants it to end
        self.cancel_tokens: list[str] = []
        self.compaction = ""  # message id of the open compaction notice
        self.compacted = False
        self._texts: dict[str, OpenText] = {}
        self._closed_texts: dict[str, OpenText] = {}
        self._calls: dict[str, JsonObject] = {}
        self._files: list[JsonObject] = []

    # ------------------------------------------------------------------ text

    def grow(self, key: str, kind: str, message_id: str, delta: str) -> list[AgentEvent]:
        """Text was added at the end."""
        if not delta:
            return []
        events = self._close_others(kind)
        open_text = self._texts.get(key)
        if open_text is None:
            open_text = self._texts[key] = OpenText(message_id, kind)
        open_text.text += delta
        payload = {} if open_text.told else dict(_SOURCE)
        open_text.told = True
        return [*events, self._message(open_text, "streaming", payload, delta=delta)]

    def replace(self, key: str, kind: str, message_id: str, text: str) -> list[AgentEvent]:
        """The text so far, whole. Identical or shrinking text changes nothing."""
        open_text = self._texts.get(key)
        known = open_text.text if open_text is not None else ""
        if not text or len(text) <= len(known):
            return []
        if text.startswith(known):
            return self.grow(key, kind, message_id, text[len(known) :])
        return self.grow(key, kind, message_id, text)

    def finish(self, key: str, kind: str, message_id: str, text: str, status: str = "completed") -> list[AgentEvent]:
        """The text is complete. Final text equal to a closed segment, but for whitespace, updates that segment."""
        open_text = self._texts.pop(key, None)
        if open_text is None:
            closed = self._closed_texts.get(key)
            if closed is not None and "".join(closed.text.split()) == "".join(text.split()):
                open_text = closed
        if open_text is None:
            if not text:
                return []
            open_text = OpenText(message_id, kind)
        open_text.text = text or open_text.text
        self._closed_texts[key] = open_text
        whole = {"content": open_text.text, "text": open_text.text, **_SOURCE}
        return [*self._close_others(kind), self._message(open_text, status, whole)]

    def close_texts(self, status: str = "completed") -> list[AgentEvent]:
        """End every open text as it is."""
        events: list[AgentEvent] = []
        for key, open_text in self._texts.items():
            whole = {"content": open_text.text, "text": open_text.text, **_SOURCE}
            events.append(self._message(open_text, status, whole))
            self._closed_texts[key] = open_text
        self._texts.clear()
        return events

    def _close_others(self, kind: str) -> list[AgentEvent]:
        """Assistant text ends the reasoning before it, and the other way round."""
        others = {key: one for key, one in self._texts.items() if one.kind != kind}
        events: list[AgentEvent] = []
        for key, open_text in others.items():
            whole = {"content": open_text.text, "text": open_text.text, **_SOURCE}
            events.append(self._message(open_text, "completed", whole))
            self._closed_texts[key] = self._texts.pop(key)
        return events

    def _message(self, text: OpenText, status: str, payload: JsonObject, delta: str = "") -> MessageEvent:
        return MessageEvent(
            type="message.appended" if delta else "message.created",
            session_id=self.session_id,
            turn_id=self.turn_id,
            message_id=text.message_id,
            kind=text.kind,
            status=status,
            payload=payload,
            delta=delta,
            lineage=self.lineage,
        )

    def plan(self, item_id: str, text: str) -> list[AgentEvent]:
        """A proposed plan."""
        payload = {"content": text, "text": text, **_SOURCE, "messageKind": "plan"}
        message = MessageEvent(
            type="message.created",
            session_id=self.session_id,
            turn_id=self.turn_id,
            message_id=f"plan:{item_id}",
            status="completed",
            payload=payload,
            lineage=self.lineage,
        )
        return [*self.close_texts(), message]

    def notice(self, message_id: str, kind: str, title: str, detail: str, severity: str = "info") -> list[AgentEvent]:
        """A system notice."""
        payload = {"kind": "agent_system_notice", "noticeKind": kind, "title": title, "severity": severity}
        if detail:
            payload["detail"] = detail
        return [self._notice(message_id, "completed", payload)]

    def compact(self, message_id: str, status: str, detail: str = "") -> list[AgentEvent]:
        """The one compaction notice: running, then completed, failed or canceled."""
        if status == "running":
            self.compaction, self.compacted = message_id, False
        elif not self.compaction and self.compacted:
            return []  # the first end wins
        target = self.compaction or message_id
        if status != "running":
            self.compaction, self.compacted = "", True
        payload: JsonObject = {
            "kind": "agent_system_notice",
            "noticeKind": "compaction",
            "title": _COMPACTION[status],
            "severity": "info",
            "noticeCommand": "compact",
            "noticeCommandStatus": status,
        }
        if detail:
            payload["detail"] = detail
        message_status = "streaming" if status == "running" else "completed"
        return [*self.close_texts(), self._notice(target, message_status, payload)]

    def _notice(self, message_id: str, status: str, payload: JsonObject) -> MessageEvent:
        return MessageEvent(
            type="message.created",
            session_id=self.session_id,
            turn_id=self.turn_id,
            message_id=message_id,
            status=status,
            payload=payload,
            lineage=self.lineage,
        )

    # ------------------------------------------------------------------ calls

    def is_open(self, call_id: str) -> bool:
        return call_id in self._calls

    def start_call(self, call_id: str, payload: JsonObject, status: str = "running") -> list[AgentEvent]:
        """A tool call begins; it ends the open texts."""
        events = self.close_texts()
        self._calls[call_id] = payload
        return [*events, self._call("call.started", call_id, status, payload)]

    def progress(self, call_id: str, payload: JsonObject) -> list[AgentEvent]:
        """A running call tells more of itself; no observation comes of it."""
        return [self._call("call.started", call_id, "running", payload, live=True)]

    def output(self, call_id: str, delta: str) -> list[AgentEvent]:
        """Live output of a running call."""
        if not delta or call_id not in self._calls:
            return []
        event = CallEvent(
            type="call.started",
            session_id=self.session_id,
            turn_id=self.turn_id,
            call_id=call_id,
            status="running",
            output_delta=delta,
            live=True,
            lineage=self.lineage,
        )
        return [event]

    def end_call(
        self, call_id: str, payload: JsonObject, status: str, changes: list[JsonObject] | None = None
    ) -> list[AgentEvent]:
        """A call ended; the files it changed go into the Turn."""
        events = self.close_texts()
        self._calls.pop(call_id, None)
        kind = "call.completed" if status == "completed" else "call.failed"
        events.append(self._call(kind, call_id, status, payload))
        if changes and status == "completed":
            events += self._changed(changes)
        return events

    def _changed(self, changes: list[JsonObject]) -> list[AgentEvent]:
        folded = normal_file_changes({"files": [*self._files, *changes]})
        files = folded["files"] if folded else []
        if files == self._files:
            return []
        self._files = files
        event = TurnEvent(
            type="turn.updated",
            session_id=self.session_id,
            turn_id=self.turn_id,
            phase="working",
            file_changes={"files": files},
            lineage=self.lineage,
        )
        return [event]

    def _call(self, kind: str, call_id: str, status: str, payload: JsonObject, live: bool = False) -> CallEvent:
        return CallEvent(
            type=kind,
            session_id=self.session_id,
            turn_id=self.turn_id,
            call_id=call_id,
            status=status,
            payload=payload,
            live=live,
            lineage=self.lineage,
        )

    # ------------------------------------------------------------------ the end

    def close(self, outcome: str) -> list[AgentEvent]:
        """Close what is open before the terminal event (provider-adapters §3.2, last paragraph)."""
        interrupted = outcome in ("interrupted", "canceled")
        events = self.close_texts("failed" if interrupted else "completed")
        for call_id in list(self._calls):
            self._calls.pop(call_id)
            if interrupted:
                events.append(self._call("call.failed", call_id, "canceled", {"error": {"message": "interrupted"}}))
            else:
                error = {"message": "The call never came to an end.", "reason": WITHOUT_RESULT}
                events.append(self._call("call.failed", call_id, "failed", {"error": error}))
        if self.compaction:
            ends = {"completed": "completed", "failed": "failed"}
            events += self.compact(self.compaction, ends.get(outcome, "canceled"))
        self.ended = True
        return events


_COMPACTION = {
    "running": "Compacting context.",
    "completed": "Context compacted.",
    "failed": "Context compaction failed.",
    "canceled": "Context compaction interrupted.",
}
