"""Child sessions: put the steps of a child between the start and the end of the call that made it."""

from __future__ import annotations

import msgspec

from cassettes.transcripts.script import CallEnd, CallStart, ChildEnd, ChildStart, Guide, Outcome, Report, Step, Turn


class Child(msgspec.Struct, kw_only=True):
    """A child session before it has its place. `steps` carry its own times and no owner."""

    key: str
    prompt: str
    title: str = ""
    model: str = ""
    steps: list[Step] = msgspec.field(default_factory=list)
    call_id: str = ""
    failed: bool = False
    interrupted: bool = False
    background: bool = False
    placed: bool = False


def place_children(turns: list[Turn], children: list[Child], report: Report) -> None:
    """Nest every child under its call: first by the id the result names, then by the prompt, in order of time."""
    starts = [step for turn in turns for step in turn.steps if isinstance(step, CallStart)]
    starts += [step for child in children for step in child.steps if isinstance(step, CallStart)]
    taken = {child.call_id for child in children if child.call_id}
    for child in sorted(children, key=lambda item: item.steps[0].at if item.steps else 0):
        if child.call_id or not child.prompt:
            continue
        for start in starts:
            wanted = start.input.get("prompt") or start.input.get("message")
            if start.tool == "agent" and start.call_id not in taken and wanted == child.prompt:
                child.call_id = start.call_id
                taken.add(start.call_id)
                break
    by_call: dict[str, list[Child]] = {}
    for child in children:
        if child.call_id:
            by_call.setdefault(child.call_id, []).append(child)
    for turn in turns:
        turn.steps = _nested(turn.steps, by_call, "", turn.ended, report)
    for child in children:
        if not child.placed:
            report.count("notes", "child session without its call")
            report.count("folded", "step of a child session without its call", len(child.steps))


def _nested(steps: list[Step], by_call: dict[str, list[Child]], owner: str, end: int, report: Report) -> list[Step]:
    calls = [step for step in steps if isinstance(step, CallStart) and step.call_id in by_call]
    for call in calls:
        for child in by_call[call.call_id]:
            if not child.placed:
                child.placed = True
                steps = _insert(steps, call, child, by_call, owner, end, report)
    return steps


def _insert(
    steps: list[Step],
    call: CallStart,
    child: Child,
    by_call: dict[str, list[Child]],
    owner: str,
    end: int,
    report: Report,
) -> list[Step]:
    first = next(number for number, step in enumerate(steps) if step is call) + 1
    last = len(steps)
    finish = max(end, steps[-1].at)
    for number in range(first, len(steps)):
        step = steps[number]
        if isinstance(step, CallEnd) and step.call_id == call.call_id and step.owner == owner and not child.background:
            last, finish = number, step.at
            child.failed = child.failed or step.failed
            break
    began = max(call.at, min(child.steps[0].at if child.steps else call.at, finish))
    inner: list[Step] = [
        ChildStart(
            at=began,
            child=child.key,
            call_id=call.call_id,
            title=child.title,
            prompt=child.prompt,
            model=child.model,
            background=child.background,
            owner=owner,
        )
    ]
    now = began
    for step in child.steps:
        if not isinstance(step, Guide):
            step.owner = child.key
    for step in _nested(child.steps, by_call, child.key, finish, report):
        if step.at > finish:
            report.count("changed", "time of a background child moved to the end of the turn")
        now = min(max(now, step.at), finish)
        step.at = now
        inner.append(step)
    outcome: Outcome = "failed" if child.failed else "interrupted" if child.interrupted else "completed"
    closing = finish if not child.background else now
    inner.append(ChildEnd(at=max(now, closing), child=child.key, outcome=outcome, owner=owner))
    return steps[:first] + _merged(steps[first:last], inner) + steps[last:]


def _merged(outer: list[Step], inner: list[Step]) -> list[Step]:
    """Both in their own order, by time; at one time the child comes first."""
    result: list[Step] = []
    at = 0
    for step in outer:
        while at < len(inner) and inner[at].at <= step.at:
            result.append(inner[at])
            at += 1
        result.append(step)
    result.extend(inner[at:])
    return result
