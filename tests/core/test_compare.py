"""Comparison: the shared cases under both profiles, and what holds for any state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.core.compare import compare_states, mismatches
from cassettes.core.errors import CassetteRejected
from cassettes.core.file_changes import is_unified_diff, normal_file_changes
from cassettes.core.state import AGENT, FULL
from tests.core.states import DATA, edited, put, rename, state_b, typed

SHARED = json.loads((DATA / "cassettes" / "compare-cases.json").read_text())


@pytest.mark.parametrize("case", SHARED, ids=[case["name"] for case in SHARED])
@pytest.mark.parametrize("profile", [FULL, AGENT], ids=["full", "agent"])
def test_shared_pairs_have_their_verdict(case: dict[str, Any], profile: Any) -> None:
    mismatch = compare_states(typed(case["expected"]), typed(case["actual"]), profile)
    verdict = {"equal": True} if mismatch is None else {"equal": False, "path": mismatch.path}
    assert verdict == case[profile.name]


RENAMED = ["ses-kid", "ses-root", "turn-a", "turn-b", "turn-k", "ptn-1", "ptn-2", "toolcall:call-9", "msg-3", "call-9"]
RENAMED += ["req-1", "att-1", "act-1", "wf-1", "task-1", "task-2", "client-submit:user:submit-1"]


@given(st.data())
def test_consistent_renaming_of_ids_stays_equal(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(RENAMED), unique=True))
    suffix = data.draw(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8))
    actual = edited(*[rename(name, f"new {name} {suffix}") for name in chosen])
    assert compare_states(typed(state_b()), typed(actual), FULL) is None


# Generated identities that nothing else names, times, and a change word that the new text already implies.
EXEMPT = {
    "$.agent.sessions[0].turns[0].fileChanges.files[0].change",
    "$.agent.sessions[0].turns[0].rootProviderTurnId",
    "$.agent.sessions[0].turns[1].rootProviderTurnId",
    "$.agent.sessions[0].messages[0].id",
    "$.agent.sessions[0].messages[0].payload.content[1].attachmentId",
    "$.agent.sessions[0].messages[1].id",
    "$.agent.sessions[0].messages[3].id",
    "$.agent.sessions[0].interactions[0].requestId",
    "$.agent.sessions[0].interactions[0].input.toolCall.toolCallId",
    "$.agent.sessions[0].goal.observed.startedAtUnixMs",
    "$.agent.sessions[0].goal.observed.durationMs",
    "$.agent.sessions[1].id",
    "$.agent.sessions[1].turns[0].id",
    "$.workflows[0].id",
    "$.issues[0].id",
    "$.issues[0].tasks[0].id",
    "$.issues[0].tasks[1].id",
}


def scalars(value: Any, path: str = "$") -> Iterator[tuple[str, list[Any]]]:
    def walk(item: Any, where: str, steps: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        if isinstance(item, dict):
            for name, member in item.items():
                yield from walk(member, f"{where}.{name}", [*steps, name])
        elif isinstance(item, list):
            for index, member in enumerate(item):
                yield from walk(member, f"{where}[{index}]", [*steps, index])
        else:
            yield where, steps

    yield from walk(value, path, [])


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}*"


@pytest.mark.parametrize("path", [path for path, _ in scalars(state_b())])
def test_any_single_changed_value_is_found_except_generated_identities(path: str) -> None:
    actual = state_b()
    steps = dict(scalars(actual))[path]
    holder: Any = actual
    for step in steps[:-1]:
        holder = holder[step]
    holder[steps[-1]] = other(holder[steps[-1]])
    try:
        equal = compare_states(typed(state_b()), typed(actual), FULL) is None
    except CassetteRejected:  # a changed relation that the document itself contradicts
        equal = False
    assert equal == (path in EXEMPT)


def test_every_mismatch_is_listed_after_the_first() -> None:
    actual = edited(put("S/title", "x"), put("S/turns/0/phase", "running"), put("workflows/0/status", "failed"))
    paths = [mismatch.path for mismatch in mismatches(typed(state_b()), typed(actual), FULL)]
    assert paths == ["$.agent.sessions[0].title", "$.agent.sessions[0].turns[0].phase", "$.workflows[0].status"]


# ------------------------------------------------------------------------------------------ file changes
@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("@@ -1 +1 @@\n-a\n+b", True),
        ("@@ -1 +1 @@ def f():\r\n-a\r\n+b\r\n", True),
        ("@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file", True),
        (
            "diff --git a/x b/x\nindex 1..2\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/y b/y\n@@ -1 +1 @@\n-a\n+b",
            True,
        ),
        ("@@ -1 +1 @@\n a", False),
        ("@@ -1,2 +1,2 @@\n-a\n+b", False),
        ("@@ -1 +1 @@\n-a\n+b\n+c", False),
        ("@@ -1 +1 @@\n-a\n+b\ntail", False),
        ("hello", False),
        ("", False),
        ("*** Begin Patch\n*** Update File: x\n@@\n a\n-b\n+c\n*** End Patch", True),
        ("*** Begin Patch\n*** Update File: x\n@@\n a\n*** End Patch", False),
        ("*** Begin Patch\n@@\n-b\n+c\n*** End Patch", False),
    ],
)
def test_a_real_unified_diff_has_counted_hunks_that_change_something(text: str, real: bool) -> None:
    assert is_unified_diff(text) is real


def folded(*entries: dict[str, Any]) -> Any:
    result = normal_file_changes({"files": [{"path": "p", **entry} for entry in entries]})
    return result and [{name: value for name, value in entry.items() if name != "path"} for entry in result["files"]]


def test_changes_of_one_path_fold_into_one_entry() -> None:
    assert folded({"change": "deleted", "oldString": "a"}, {"change": "added", "newString": "b"}) == [
        {"change": "modified", "oldString": "a", "newString": "b"}
    ]
    assert folded({"change": "modified", "oldString": "a"}, {"change": "deleted", "oldString": "b"}) == [
        {"change": "deleted", "oldString": "a"}
    ]
    assert folded({"change": "added", "newString": "a"}, {"change": "deleted"}) is None


def test_a_change_word_is_found_in_nested_objects_and_any_letter_case() -> None:
    assert folded({"status": "unknown", "kind": {"type": "UPDATE"}, "newString": "x"}) == [
        {"change": "modified", "newString": "x"}
    ]


def test_evidence_decides_where_no_change_is_named() -> None:
    assert folded({"oldString": "a"}) == [{"change": "deleted", "oldString": "a"}]
    assert folded({"newText": ""}) == [{"change": "added", "newString": ""}]
    assert folded({"old_string": "a", "new_string": "b"}) == [
        {"change": "modified", "oldString": "a", "newString": "b"}
    ]
    assert folded({}) is None
