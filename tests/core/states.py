"""Helpers of the state tests: the example state B of replay-state §20 and edits of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cassettes.core.state import ReplayState, decode_state

DATA = Path(__file__).parent.parent / "data"
_B = json.loads((DATA / "state-b.json").read_text())
Document = dict[str, Any]
Edit = Callable[[Document], None]


def state_b() -> Document:
    return copy.deepcopy(_B)


def typed(document: Document) -> ReplayState:
    return decode_state(json.dumps(document).encode(), file="state.json")


def _steps(pointer: str) -> list[Any]:
    steps = pointer.removeprefix("/").split("/")
    if steps[0] == "S":
        steps = ["agent", "sessions", "0", *steps[1:]]
    elif steps[0] == "K":
        steps = ["agent", "sessions", "1", *steps[1:]]
    return [int(step) if step.isdigit() else step for step in steps]


def _holder(document: Document, pointer: str) -> tuple[Any, Any]:
    *parents, last = _steps(pointer)
    value: Any = document
    for step in parents:
        value = value[step]
    return value, last


def put(pointer: str, value: Any) -> Edit:
    """Set a member; `S` is the root Session, `K` its child."""

    def edit(document: Document) -> None:
        holder, last = _holder(document, pointer)
        holder[last] = copy.deepcopy(value)

    return edit


def drop(pointer: str) -> Edit:
    def edit(document: Document) -> None:
        holder, last = _holder(document, pointer)
        del holder[last]

    return edit


def append(pointer: str, value: Any) -> Edit:
    def edit(document: Document) -> None:
        holder, last = _holder(document, pointer)
        holder[last].append(copy.deepcopy(value))

    return edit


def rename(old: str, new: str, *, arrays: bool = True) -> Edit:
    """Replace every string that equals `old`."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(item) for name, item in value.items()}
        if isinstance(value, list):
            return [item if isinstance(item, str) and not arrays else walk(item) for item in value]
        return new if value == old else value

    def edit(document: Document) -> None:
        renamed = walk(document)
        document.clear()
        document.update(renamed)

    return edit


def swap(pointer: str, left: int, right: int) -> Edit:
    def edit(document: Document) -> None:
        holder, last = _holder(document, pointer)
        array = holder[last]
        array[left], array[right] = array[right], array[left]

    return edit


def edited(*edits: Edit) -> Document:
    document = state_b()
    for edit in edits:
        edit(document)
    return document


def without_products(*edits: Edit) -> Document:
    """State B' of §21.6: B with empty product domains."""
    document = state_b()
    document["tuttiMode"] = {"activations": [], "turnSnapshots": []}
    document["workflows"] = []
    document["issues"] = []
    for edit in edits:
        edit(document)
    return document


UNCONFIGURED = {
    "sessionId": "ses-root",
    "turnId": "turn-a",
    "revision": 0,
    "state": "inactive",
    "preferenceVersion": 0,
    "effect": 0,
    "speed": 0,
    "dispatchState": "accepted",
}
