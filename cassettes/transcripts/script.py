"""The neutral form of a transcript: what a person and an agent did, and when (transcript-formats).

Every reader of a format builds a `Script`; everything after it knows no format any more.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

JsonObject = dict[str, Any]

CONTINUED = "(session continued)"


class LineProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could not be read whole. `line` is 1-based."""

    file: str
    line: int
    kind: str  # bad_json, cut_line, not_an_object, line_too_long, invalid_utf8, several_records, too_deep
    detail: str = ""


class Report(msgspec.Struct, kw_only=True):
    """What the reader did not understand, left out or had to change. Nothing is dropped without a count here."""

    format: str = ""
    records: int = 0
    problems: list[LineProblem] = msgspec.field(default_factory=list)
    problem_count: int = 0
    unknown: dict[str, int] = msgspec.field(default_factory=dict)  # records and blocks of an unknown kind
    folded: dict[str, int] = msgspec.field(default_factory=dict)  # known, but no part of the conversation
    changed: dict[str, int] = msgspec.field(default_factory=dict)  # values masked, shortened or moved
    notes: dict[str, int] = msgspec.field(
        default_factory=dict
    )  # findings: branches, unfinished calls, dangling parents
    branches: list[str] = msgspec.field(default_factory=list)  # prompts of the branches that the person left

    def count(self, table: Literal["unknown", "folded", "changed", "notes"], kind: str, number: int = 1) -> None:
        """Count `kind` in one of the tables."""
        counts: dict[str, int] = getattr(self, table)
        counts[kind] = counts.get(kind, 0) + number

    def problem(self, problem: LineProblem) -> None:
        """Keep the first thousand problems, count all."""
        self.problem_count += 1
        if len(self.problems) < 1000:
            self.problems.append(problem)


class Usage(msgspec.Struct, kw_only=True):
    """Tokens, each reply counted once."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, other: Usage) -> None:
        """Add `other` to this."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file of a tool call. `diff` is a unified diff, `content` the whole text of an added file."""

    path: str
    change: Literal["add", "update", "delete"]
    diff: str = ""
    content: str | None = None
    move_path: str = ""


class Text(msgspec.Struct, kw_only=True):
    """Text of the agent, said (`assistant`) or thought (`reasoning`)."""

    at: int
    kind: Literal["assistant", "reasoning"]
    id: str
    text: str
    owner: str = ""  # key of the child session, empty = root


class CallStart(msgspec.Struct, kw_only=True):
    """A tool call begins."""

    at: int
    call_id: str
    name: str
    tool: Literal["command", "patch", "mcp", "search", "image", "agent", "plan", "other"] = "other"
    input: JsonObject = msgspec.field(default_factory=dict)
    owner: str = ""


class CallEnd(msgspec.Struct, kw_only=True):
    """A tool call ended. `output` is what the transcript kept of the result."""

    at: int
    call_id: str
    output: JsonObject = msgspec.field(default_factory=dict)
    failed: bool = False
    error: str = ""
    changes: list[FileDiff] = msgspec.field(default_factory=list)
    owner: str = ""


class Notice(msgspec.Struct, kw_only=True):
    """Something the harness said: a retry, a limit, a queued prompt that was removed."""

    at: int
    kind: str
    title: str
    detail: str = ""
    owner: str = ""


class Compaction(msgspec.Struct, kw_only=True):
    """The context was compacted."""

    at: int
    started: int
    id: str
    summary: str = ""
    trigger: str = ""
    owner: str = ""


class Guide(msgspec.Struct, kw_only=True):
    """A prompt that joined the running Turn."""

    at: int
    content: list[JsonObject]


class ChildStart(msgspec.Struct, kw_only=True):
    """A child session begins below a tool call."""

    at: int
    child: str  # key: the id that the provider gave the child
    call_id: str
    title: str = ""
    prompt: str = ""
    model: str = ""
    background: bool = False
    owner: str = ""


class ChildEnd(msgspec.Struct, kw_only=True):
    """A child session ended."""

    at: int
    child: str
    outcome: Literal["completed", "failed", "interrupted"] = "completed"
    summary: str = ""
    owner: str = ""


Step = Text | CallStart | CallEnd | Notice | Compaction | Guide | ChildStart | ChildEnd
Outcome = Literal["completed", "interrupted", "failed"]


class Turn(msgspec.Struct, kw_only=True):
    """One prompt and everything until the agent rested. Times are epoch milliseconds and never go back."""

    at: int
    prompt: list[JsonObject]  # {type: text, text} | {type: image, mimeType, data}
    display: str = ""  # what the person saw as the prompt, where it is only a part of it
    steps: list[Step] = msgspec.field(default_factory=list)
    outcome: Outcome = "completed"
    error: str = ""
    ended: int = 0
    invented: bool = False  # the prompt was not typed by a person
    provider_turn_id: str = ""
    model: str = ""
    effort: str = ""
    plan_mode: bool = False
    usage: Usage = msgspec.field(default_factory=Usage)

    @property
    def text(self) -> str:
        """The text blocks of the prompt, joined."""
        return "\n".join(str(block["text"]) for block in self.prompt if block.get("type") == "text")


class Script(msgspec.Struct, kw_only=True):
    """A whole session."""

    provider: Literal["codex", "claude-code", "acp"]
    session_id: str
    cwd: str = ""
    model: str = ""
    effort: str = ""
    permission: str = ""  # read-only, auto, full-access (Codex) or the permission mode (Claude Code)
    title: str = ""
    version: str = ""
    git_branch: str = ""
    forked_from: str = ""
    started: int = 0
    turns: list[Turn] = msgspec.field(default_factory=list)
    report: Report = msgspec.field(default_factory=Report)
    usage: Usage = msgspec.field(default_factory=Usage)
    models: dict[str, int] = msgspec.field(default_factory=dict)  # replies of each model
    session_ids: list[str] = msgspec.field(default_factory=list)  # all that the file names, in order

    @property
    def ended(self) -> int:
        """Time of the last thing that happened."""
        return max((turn.ended for turn in self.turns), default=self.started)
