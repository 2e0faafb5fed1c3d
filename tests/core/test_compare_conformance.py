"""The comparison cases of replay-state §21.1-21.4 and §21.6, as a table: edits of state B and the first mismatch."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cassettes.core.compare import compare_states, merge_states
from cassettes.core.errors import CassetteRejected, Conflict
from cassettes.core.state import AGENT, FULL, Profile, check_profile, check_state
from tests.core.states import UNCONFIGURED, Edit, append, drop, edited, put, rename, swap, typed, without_products

ROOT = "$.agent.sessions[0]"
CHILD = "$.agent.sessions[1]"
FILES = "S/turns/0/fileChanges"
PATH = "${REPLAY_CWD}/app/hello.txt"
DIFF = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n keep\n-old\n+new"


def renamed_ids() -> list[Edit]:
    pairs = [
        ("ses-kid", "s9"),
        ("turn-a", "t9"),
        ("turn-b", "t8"),
        ("turn-k", "t7"),
        ("ptn-1", "p9"),
        ("ptn-2", "p8"),
        ("client-submit:user:submit-1", "m9"),
        ("toolcall:call-9", "m8"),
        ("msg-3", "m7"),
        ("client-submit:user:submit-2", "m6"),
        ("call-9", "c9"),
        ("req-1", "r9"),
        ("att-1", "a9"),
        ("act-1", "x9"),
        ("wf-1", "w9"),
        ("task-1", "k9"),
        ("task-2", "k8"),
    ]
    return [rename(old, new, arrays=False) for old, new in pairs]


def second_child(**members: Any) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        child = copy.deepcopy(document["agent"]["sessions"][1])
        child.update({"id": "ses-zed", **members})
        document["agent"]["sessions"].append(child)

    return edit


def without_cwd(document: dict[str, Any]) -> None:
    del document["agent"]["sessions"][2]["cwd"]


def files(*entries: dict[str, Any]) -> Edit:
    return put(f"{FILES}/files", [{"path": PATH, **entry} for entry in entries])


def text(value: str) -> Edit:
    return put("S/messages/2/payload/text", value)


EXTRA_MESSAGE = {"id": "msg-9", "turnId": "turn-b", "role": "assistant", "kind": "text", "payload": {}}

# name, edits of expected, edits of actual, path of the first mismatch ("" = equal)
CASES: list[tuple[str, list[Edit], list[Edit], str]] = [
    ("C1", [], [], ""),
    ("C2", [], renamed_ids(), ""),
    ("C3", [], [rename("ses-root", "ses-9")], ""),
    ("C4", [], [rename("iss-1", "iss-9")], "$.workflows[0].issueIds[0]"),
    ("C5", [], [put("S/messages/3/turnId", "turn-a")], f"{ROOT}.messages[3].turnId"),
    ("C6", [], [put("K/parentToolCallId", "call-x")], f"{CHILD}.parentToolCallId"),
    ("C7", [], [put("workflows/0/sourceToolCallId", "call-x")], "$.workflows[0].sourceToolCallId"),
    ("C8 other", [], [put("S/interactions/0/input/toolCall/toolCallId", "zzz")], ""),
    ("C8 blank", [], [put("S/interactions/0/input/toolCall/toolCallId", "  ")], ""),
    (
        "C9",
        [],
        [drop("S/interactions/0/input/toolCall/toolCallId")],
        f"{ROOT}.interactions[0].input.toolCall.toolCallId",
    ),
    ("C10", [], [put("S/providerSessionId", "thread-999")], f"{ROOT}.providerSessionId"),
    ("C11", [], [rename("actrev-1", "actrev-9")], "$.tuttiMode.activations[0].currentRevisionId"),
    ("C12", [], [rename("wfrev-1", "wfrev-9")], "$.workflows[0].currentRevisionId"),
    ("C13", [], [put("S/messages/0/payload/clientSubmitId", "submit-9")], f"{ROOT}.messages[0].payload.clientSubmitId"),
    ("C14", [], [put("S/messages/0/id", "client-submit:user:submit-9")], ""),
    ("C15 one side", [], [put("S/messages/2/payload/seq", 99)], ""),
    ("C15 both", [put("S/messages/2/payload/seq", {"a": 1})], [put("S/messages/2/payload/seq", "x")], ""),
    (
        "C16",
        [put("S/messages/1/payload/output/seq", 1)],
        [put("S/messages/1/payload/output/seq", 2)],
        f"{ROOT}.messages[1].payload.output.seq",
    ),
    ("C17", [text("turn-a")], [text("turn-a"), rename("turn-a", "turn-z")], ""),
    (
        "C18",
        [text("see turn-a")],
        [text("see turn-z"), rename("turn-a", "turn-z")],
        f"{ROOT}.messages[2].payload.text",
    ),
    (
        "C19",
        [put("S/messages/2/payload/refs", ["turn-a"])],
        [put("S/messages/2/payload/refs", ["turn-a"]), rename("turn-a", "turn-z")],
        f"{ROOT}.messages[2].payload.refs[0]",
    ),
    ("C20", [second_child(), without_cwd], [second_child(), without_cwd, swap("agent/sessions", 1, 2)], f"{CHILD}.cwd"),
    (
        "C20 title",
        [second_child(title="Other")],
        [second_child(title="Other"), swap("agent/sessions", 1, 2)],
        f"{CHILD}.title",
    ),
    # settings
    ("C21", [], [put("S/settings/speed", "standard")], ""),
    ("C21 any", [], [put("S/settings/whatever", {"deep": [1]})], ""),
    ("C22", [], [drop("S/settings/planMode")], ""),
    ("C23", [], [put("S/settings/planMode", "")], ""),
    ("C24", [], [put("S/settings/planMode", 0)], f"{ROOT}.settings.planMode"),
    ("C25 missing", [], [drop("S/settings/reasoningEffort")], f"{ROOT}.settings.reasoningEffort"),
    ("C25 other", [], [put("S/settings/reasoningEffort", "low")], f"{ROOT}.settings.reasoningEffort"),
    ("C26", [], [put("S/settings/model", " model-s ")], ""),
    ("C27", [put("S/settings", None)], [], ""),
    ("C28", [], [put("S/settings", None)], f"{ROOT}.settings.model"),
    ("C29", [put("S/settings/speed", "standard")], [], f"{ROOT}.settings.speed"),
    ("C30", [put("S/settings/x", {})], [], f"{ROOT}.settings.x"),
    (
        "C31",
        [],
        [put("S/settings/model", "other"), put("S/settings/reasoningEffort", "low")],
        f"{ROOT}.settings.model",
    ),
    ("C32", [put("S/messages/1/payload/settings", {})], [put("S/messages/1/payload/settings", {"a": 1})], ""),
    ("C33", [], [put("S/messages/1/payload/settings", {})], f"{ROOT}.messages[1].payload.settings"),
    ("C34", [], [put("S/model", "other")], f"{ROOT}.model"),
    # turns, goal, file changes
    (
        "C35",
        [],
        [put("S/turns/1/completedCommand", {"finalAssistantMessageResolved": True})],
        f"{ROOT}.turns[1].completedCommand",
    ),
    (
        "C37",
        [put("S/turns/1/completedCommand", {"kind": "compact", "status": "canceled"})],
        [put("S/turns/1/completedCommand", {"kind": "compact", "status": "failed"})],
        f"{ROOT}.turns[1].completedCommand.status",
    ),
    ("C38", [], [put("S/turns/1/outcome", "interrupted")], f"{ROOT}.turns[1].outcome"),
    (
        "C39",
        [],
        [
            put("S/goal/observed/startedAtUnixMs", 5),
            put("S/goal/desired/startedAtUnixMs", 5),
            drop("S/goal/observed/durationMs"),
        ],
        "",
    ),
    ("C40", [], [put("S/goal/observed/iterations", 2)], f"{ROOT}.goal.observed.iterations"),
    ("C41", [put("S/goal/observed/iterations", 1.0)], [], ""),
    ("C42", [], [drop("S/goal")], f"{ROOT}.goal"),
    ("C43", [], [put("S/goal/lastEvidence/confidence", "x")], f"{ROOT}.goal.lastEvidence.confidence"),
    ("C44", [], [put(f"{FILES}/files/0/newString", "hello\r\n")], ""),
    ("C45", [files({"change": "added", "diff": "hello", "unifiedDiff": "hello"})], [], ""),
    ("C46", [files({"content": "hello"})], [], ""),
    ("C47", [files({"change": "create", "new_string": "hello"})], [], ""),
    (
        "C48",
        [files({"change": "modified", "diff": "X"})],
        [files({"change": "modified", "newString": "X\n"})],
        "",
    ),
    ("C49", [files({"change": "deleted", "diff": "X"})], [files({"change": "deleted", "oldString": "X"})], ""),
    ("C50", [files({"change": "modified", "diff": DIFF})], [files({"change": "modified", "patch": DIFF + "\n"})], ""),
    (
        "C51",
        [files({"change": "modified", "diff": DIFF})],
        [files({"change": "modified", "diff": DIFF, "newString": "n"})],
        f"{ROOT}.turns[0].fileChanges.files[0].newString",
    ),
    ("C52 empty", [put(f"{FILES}/files", [])], [drop(FILES)], ""),
    ("C52 no evidence", [files({})], [drop(FILES)], ""),
    ("C53", [], [drop(FILES)], f"{ROOT}.turns[0].fileChanges"),
    ("C54", [files({"change": "added", "newString": "h"}, {"change": "modified", "newString": "hello"})], [], ""),
    ("C55", [files({"change": "added", "newString": "h"}, {"change": "deleted"})], [drop(FILES)], ""),
    ("C56", [], [put(f"{FILES}/coverage", "partial")], f"{ROOT}.turns[0].fileChanges.coverage"),
    # shape and walk order
    ("C57 null", [], [put("K/turns", None)], f"{CHILD}.turns"),
    ("C57 missing", [], [drop("K/turns")], f"{CHILD}.turns"),
    ("C58", [put("S/messages/2/payload", {})], [drop("S/messages/2/payload")], f"{ROOT}.messages[2].payload"),
    ("C59", [put("K/title", "")], [drop("K/title")], ""),
    ("C60", [], [put("S/turns/0/error", {})], ""),
    ("C61 null", [], [put("S/turns/0/capabilityRefs", None)], f"{ROOT}.turns[0].capabilityRefs"),
    (
        "C61 added",
        [],
        [append("S/turns/0/capabilityRefs", {"capability": "goal", "source": "user"})],
        f"{ROOT}.turns[0].capabilityRefs",
    ),
    ("C62", [], [append("S/messages", EXTRA_MESSAGE)], f"{ROOT}.messages"),
    (
        "C62 with change",
        [],
        [append("S/messages", EXTRA_MESSAGE), put("S/messages/0/status", "failed")],
        f"{ROOT}.messages",
    ),
    ("C63", [], [put("S/unknownMember", 1)], ""),
    ("C64", [], [put("S/messages/2/payload/zzz", 1)], f"{ROOT}.messages[2].payload.zzz"),
    (
        "C65",
        [],
        [
            put("S/turns/0/outcome", "failed"),
            put("S/messages/0/status", "failed"),
            put("S/interactions/0/status", "superseded"),
        ],
        f"{ROOT}.interactions[0].status",
    ),
    ("C66", [], [swap("S/messages", 1, 2)], f"{ROOT}.messages[1].kind"),
    ("C67", [], [put("S/messages/2/payload/content", ["Done."])], f"{ROOT}.messages[2].payload.content"),
    (
        "C68",
        [],
        [drop("S/messages/0/payload/content/1/attachmentId")],
        f"{ROOT}.messages[0].payload.content[1].attachmentId",
    ),
    ("C69 checkpoint", [], [put("S/providerResumeCheckpoint", {"a": 1})], f"{ROOT}.providerResumeCheckpoint"),
    ("C69 project", [], [put("S/railProjectPath", "${REPLAY_CWD}/x")], f"{ROOT}.railProjectPath"),
    ("C69 pinned", [], [put("S/pinned", True)], f"{ROOT}.pinned"),
    ("C70 workflow", [], [put("workflows/0/status", "completed")], "$.workflows[0].status"),
    ("C70 task", [], [put("issues/0/tasks/1/status", "running")], "$.issues[0].tasks[1].status"),
    ("C70 tasks", [], [drop("issues/0/tasks/1")], "$.issues[0].tasks"),
    ("C70 effect", [], [put("tuttiMode/activations/0/effect", 51)], "$.tuttiMode.activations[0].effect"),
    (
        "C70 snapshot",
        [],
        [put("tuttiMode/turnSnapshots/1/dispatchState", "prepared")],
        "$.tuttiMode.turnSnapshots[1].dispatchState",
    ),
]


@pytest.mark.parametrize(("edits", "changes", "path"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_edits_of_the_example_give_the_first_mismatch_of_the_spec(
    edits: list[Edit], changes: list[Edit], path: str
) -> None:
    mismatch = compare_states(typed(edited(*edits)), typed(edited(*changes)), FULL)
    assert (mismatch.path if mismatch else "") == path


def test_comparison_leaves_both_documents_as_they_were() -> None:
    expected, actual = typed(edited(put("S/messages/2/payload/seq", 3))), typed(edited())
    compare_states(expected, actual, FULL)
    assert expected == typed(edited(put("S/messages/2/payload/seq", 3)))
    assert actual == typed(edited())


def test_an_invalid_side_is_named() -> None:
    with pytest.raises(CassetteRejected) as caught:
        compare_states(typed(edited()), typed(edited(put("S/activeTurnId", "turn-a"))), FULL)
    assert str(caught.value.place) == "actual, $.agent.sessions[0].activeTurnId"


# ----------------------------------------------------------------------------------- profiles (C81-C86)
WORKFLOWS = Profile("agent and workflows", tutti_mode=False, workflows=True, issues=False)
SNAPSHOT = append("tuttiMode/turnSnapshots", UNCONFIGURED)
ACTIVE = append("tuttiMode/turnSnapshots", {**UNCONFIGURED, "state": "active"})
WORKFLOW = edited()["workflows"][0]
ISSUE = edited()["issues"][0]


@pytest.mark.parametrize("document", [without_products(), without_products(SNAPSHOT)], ids=["C81", "C81 snapshot"])
def test_the_agent_profile_accepts_agent_state_and_unconfigured_snapshots(document: dict[str, Any]) -> None:
    check_profile(typed(document), AGENT)


@pytest.mark.parametrize(
    ("document", "profile", "domain", "path"),
    [
        (edited(), AGENT, "tuttiMode", "$.tuttiMode.activations"),
        (without_products(ACTIVE), AGENT, "tuttiMode", "$.tuttiMode.turnSnapshots"),
        (without_products(append("workflows", WORKFLOW)), AGENT, "workflows", "$.workflows"),
        (without_products(append("issues", ISSUE)), AGENT, "issues", "$.issues"),
        (without_products(append("workflows", WORKFLOW)), WORKFLOWS, "issues", "$.workflows[0].issueIds"),
    ],
    ids=["C82", "C83", "C84 workflow", "C84 issue", "C85"],
)
def test_content_of_a_disabled_domain_is_refused(
    document: dict[str, Any], profile: Profile, domain: str, path: str
) -> None:
    state = typed(document)
    check_state(state)
    with pytest.raises(CassetteRejected) as caught:
        check_profile(state, profile)
    assert caught.value.code == "state_profile_unsupported"
    assert (caught.value.expected, caught.value.place.path) == (f"nothing in {domain}", path)


def test_unconfigured_snapshots_count_in_the_full_profile_only() -> None:  # C86
    expected, actual = typed(without_products(SNAPSHOT)), typed(without_products())
    assert compare_states(expected, actual, AGENT) is None
    mismatch = compare_states(expected, actual, FULL)
    assert mismatch is not None
    assert mismatch.path == "$.tuttiMode.turnSnapshots"


# ----------------------------------------------------------------------------------- merge (C87-C90)
def test_merging_a_state_with_itself_keeps_every_product_object_once() -> None:  # C87
    merged = merge_states([typed(edited()), typed(edited())])
    counts = [len(items) for items in (merged.activations, merged.turn_snapshots, merged.workflows, merged.issues)]
    assert counts == [1, 2, 1, 1]
    assert [graph.root_session_id for graph in merged.graphs] == ["ses-root", "ses-root"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (put("workflows/0/status", "completed"), "$.workflows[wf-1].status"),
        (text("Other"), "$.agent.sessions[ses-root].messages[2].payload.text"),
        (put("tuttiMode/turnSnapshots/1/speed", 1), "$.tuttiMode.turnSnapshots[ses-root/turn-b].speed"),
        (put("issues/0/tasks/0/title", "Other"), "$.issues[iss-1].tasks[0].title"),
        (put("tuttiMode/activations/0/source", "agent_command"), "$.tuttiMode.activations[act-1].source"),
    ],
)
def test_a_batch_that_disagrees_is_refused_with_the_path(change: Edit, path: str) -> None:  # C88
    with pytest.raises(Conflict) as caught:
        merge_states([typed(edited()), typed(edited(change))])
    assert caught.value.place.path == path


def test_the_earlier_document_is_the_expected_one_for_settings() -> None:  # C89, C90
    plain, fast = typed(edited()), typed(edited(put("S/settings/speed", "fast")))
    assert merge_states([plain, fast]).graphs[0].sessions[0].settings == plain.agent.sessions[0].settings
    with pytest.raises(Conflict) as caught:
        merge_states([fast, plain])
    assert caught.value.place.path == "$.agent.sessions[ses-root].settings.speed"
