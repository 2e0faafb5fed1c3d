"""Reading, writing and checking one state document (replay-state §2, §9.1, §21.5; hardenings of cassette-v7 §16)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.core.compare import compare_states
from cassettes.core.errors import CassetteRejected
from cassettes.core.state import ReplayState, check_artifact_state, check_state, decode_state, encode_state, to_wire
from tests.core.states import Edit, append, drop, edited, put, rename, state_b, typed

ROOT = "$.agent.sessions[0]"
PAYLOAD = "S/messages/2/payload"


# ------------------------------------------------------------------------------------------- reading, writing
def test_the_example_survives_reading_and_writing() -> None:
    assert json.loads(encode_state(typed(state_b()))) == state_b()


def test_a_state_file_has_two_space_indentation_sorted_open_objects_and_one_final_newline() -> None:
    state = typed(edited(put(PAYLOAD, {"b": 1, "a": {"d": [], "c": {}}})))
    text = encode_state(state).decode()
    assert text.startswith('{\n  "schemaVersion": 1,\n  "agent": {\n    "rootSessionId": "ses-root",')
    assert text.endswith("}\n")
    assert not text.endswith("\n\n")
    assert text.index('"c": {}') < text.index('"d": []') < text.index('"b": 1')


def test_null_is_not_an_empty_object_or_array() -> None:
    state = typed(edited(put("S/settings", None), drop("S/turns/1/capabilityRefs"), put("issues/0/tasks", None)))
    document = to_wire(state)
    assert document["agent"]["sessions"][0]["settings"] is None
    assert document["agent"]["sessions"][0]["turns"][1]["capabilityRefs"] is None
    assert document["issues"][0]["tasks"] is None
    assert decode_state(encode_state(state)) == state


def test_members_at_their_zero_value_are_left_out_only_where_the_spec_says_so() -> None:
    child = to_wire(typed(edited(put("K/title", ""), put("K/turns/0/error", {}))))["agent"]["sessions"][1]
    assert "title" not in child
    assert "error" not in child["turns"][0]
    assert child["messages"] == []
    assert child["pinned"] is False


def test_unknown_members_of_typed_objects_are_dropped_and_open_objects_kept() -> None:
    document = to_wire(typed(edited(put("S/unknown", 1), put(f"{PAYLOAD}/unknown", 1), put("zzz", []))))
    session = document["agent"]["sessions"][0]
    assert "unknown" not in session
    assert session["messages"][2]["payload"]["unknown"] == 1
    assert "zzz" not in document


def test_members_are_found_in_any_letter_case() -> None:
    document = state_b()
    document["AGENT"] = document.pop("agent")
    assert typed(document) == typed(state_b())


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (put("S/title", 5), f"{ROOT}.title"),
        (put("S/pinned", "yes"), f"{ROOT}.pinned"),
        (put("S/goal/revision", 1.5), f"{ROOT}.goal.revision"),
        (put("S/goal/revision", True), f"{ROOT}.goal.revision"),
        (put("schemaVersion", 1.0), "$.schemaVersion"),
        (put("S/messages/0/payload", []), f"{ROOT}.messages[0].payload"),
        (put("S/turns", {}), f"{ROOT}.turns"),
        (put("workflows/0/issueIds/0", 7), "$.workflows[0].issueIds[0]"),
        (put("agent", "x"), "$.agent"),
        (put("S/TITLE", "twice"), f"{ROOT}.TITLE"),
    ],
)
def test_a_member_of_another_type_makes_the_file_unreadable(edit: Edit, path: str) -> None:
    with pytest.raises(CassetteRejected) as caught:
        typed(edited(edit))
    assert (caught.value.code, caught.value.place.path, caught.value.place.file) == (
        "state_unreadable",
        path,
        "state.json",
    )


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    )
)
def test_any_open_content_survives_reading_and_writing(value: Any) -> None:
    state = typed(edited(put(f"{PAYLOAD}/open", value)))
    assert compare_states(state, decode_state(encode_state(state))) is None


# ------------------------------------------------------------------------------------------- V1-V11
def refusal(state: ReplayState) -> tuple[str, str]:
    with pytest.raises(CassetteRejected) as caught:
        check_state(state, file="expected-state.json")
    assert caught.value.place.file == "expected-state.json"
    return caught.value.code, caught.value.place.path


@pytest.mark.parametrize(
    ("edits", "code", "path"),
    [
        ([put("schemaVersion", 2)], "state_schema_version", "$.schemaVersion"),
        ([drop("schemaVersion")], "state_schema_version", "$.schemaVersion"),
        ([put("agent/rootSessionId", " ")], "state_invalid", "$.agent.rootSessionId"),
        ([put("agent/sessions", [])], "state_invalid", "$.agent.sessions"),
        ([put("agent", None)], "state_invalid", "$.agent.rootSessionId"),
        ([put("S/kind", "kid")], "state_invalid", f"{ROOT}.kind"),
        ([drop("S/kind")], "state_invalid", f"{ROOT}.kind"),
        ([put("S/providerSessionId", " ")], "state_invalid", f"{ROOT}.providerSessionId"),
        ([put("S/agentTargetId", "")], "state_invalid", f"{ROOT}.agentTargetId"),
        ([put("S/provider", "")], "state_invalid", f"{ROOT}.provider"),
        ([put("S/messages/1/id", "")], "state_invalid", f"{ROOT}.messages[1].id"),
        ([put("K/turns/0/id", "")], "state_invalid", "$.agent.sessions[1].turns[0].id"),
        ([put("S/activeTurnId", "turn-a")], "state_conflict", f"{ROOT}.activeTurnId"),
        ([put("S/goal/pendingOperationId", "op")], "state_conflict", f"{ROOT}.goal.pendingOperationId"),
        ([put("K/id", "ses-root")], "state_conflict", "$.agent.sessions[1].id"),
        ([put("S/turns/1/id", "turn-a")], "state_conflict", f"{ROOT}.turns[1].id"),
        ([put("S/messages/2/turnId", "turn-x")], "state_conflict", f"{ROOT}.messages[2].turnId"),
        ([put("K/parentSessionId", "ses-x")], "state_conflict", "$.agent.sessions[1].parentSessionId"),
        ([drop("K/parentSessionId")], "state_conflict", "$.agent.sessions[1].parentSessionId"),
        ([put("K/rootSessionId", "ses-x")], "state_conflict", "$.agent.sessions[1].rootSessionId"),
        ([put("agent/rootSessionId", "ses-x")], "state_conflict", "$.agent.rootSessionId"),
        ([put("S/kind", "child")], "state_conflict", f"{ROOT}.kind"),
        ([put("workflows", None)], "state_invalid", "$.workflows"),
        ([drop("issues")], "state_invalid", "$.issues"),
        ([put("tuttiMode/activations", None)], "state_invalid", "$.tuttiMode.activations"),
        ([drop("tuttiMode")], "state_invalid", "$.tuttiMode.activations"),
        ([put("workflows/0/issueIds", None)], "state_invalid", "$.workflows[0].issueIds"),
        ([put(f"{PAYLOAD}/workspaceId", None)], "state_non_portable", f"{ROOT}.messages[2].payload.workspaceId"),
        ([put(f"{PAYLOAD}/filePath", "/x")], "state_non_portable", f"{ROOT}.messages[2].payload.filePath"),
        ([put(f"{PAYLOAD}/paths", ["a", "/x"])], "state_non_portable", f"{ROOT}.messages[2].payload.paths[1]"),
        ([put(f"{PAYLOAD}/mypathname", "file:///x")], "state_non_portable", f"{ROOT}.messages[2].payload.mypathname"),
        ([put(f"{PAYLOAD}/input", {"cwd": "/x"})], "state_non_portable", f"{ROOT}.messages[2].payload.input.cwd"),
        ([put("S/cwd", "/x")], "state_non_portable", f"{ROOT}.cwd"),
        ([put(f"{PAYLOAD}/path", "C:\\x")], "state_non_portable", f"{ROOT}.messages[2].payload.path"),
        ([put(f"{PAYLOAD}/path", "c:/x")], "state_non_portable", f"{ROOT}.messages[2].payload.path"),
        ([put(f"{PAYLOAD}/path", "\\\\host\\x")], "state_non_portable", f"{ROOT}.messages[2].payload.path"),
    ],
)
def test_a_broken_document_is_refused_with_its_place(edits: list[Edit], code: str, path: str) -> None:
    assert refusal(typed(edited(*edits))) == (code, path)


@pytest.mark.parametrize(
    "edit",
    [
        put(f"{PAYLOAD}/text", "/etc/hosts"),
        put(f"{PAYLOAD}/path", "~/.ssh"),
        put(f"{PAYLOAD}/path", {"text": "/x"}),
        put("S/railSectionKey", "project:/abs"),
        put("S/interactions/0/turnId", "turn-x"),
        put("S/turns/0/phase", "bogus"),
        put("S/messages/2/id", "toolcall:call-9"),
        put("issues/0/tasks", None),
        put("S/messages/2/turnId", ""),
        put("S/workspaceid", "other letter case"),
    ],
)
def test_what_the_reference_accepts_is_accepted(edit: Edit) -> None:  # C75, C76, C80
    check_state(typed(edited(edit)))


def test_the_first_failure_in_check_order_wins() -> None:
    assert refusal(typed(edited(put("K/kind", "x"), put("S/activeTurnId", "t")))) == (
        "state_conflict",
        f"{ROOT}.activeTurnId",
    )
    assert refusal(typed(edited(put(f"{PAYLOAD}/path", "/x"), put("issues", None)))) == ("state_invalid", "$.issues")


# ------------------------------------------------------------------------------------------- inside a Cassette
@pytest.mark.parametrize(
    ("edits", "code", "path"),
    [
        ([rename("ses-root", "ses-other")], "state_root_mismatch", "$.agent.rootSessionId"),
        ([put("S/railSectionKey", "project:/abs")], "state_non_portable", f"{ROOT}.railSectionKey"),
        ([put("S/railSectionKey", "project:C:\\x")], "state_non_portable", f"{ROOT}.railSectionKey"),
        ([put("S/cwd", "${REPLAY_CWD}/../out")], "state_non_portable", f"{ROOT}.cwd"),
        ([put("S/cwd", "../out")], "state_non_portable", f"{ROOT}.cwd"),
        (
            [put(f"{PAYLOAD}/path", "${REPLAY_CWD}/a/../../b")],
            "state_non_portable",
            f"{ROOT}.messages[2].payload.path",
        ),
        ([put("S/interactions/0/turnId", "turn-x")], "state_conflict", f"{ROOT}.interactions[0].turnId"),
        ([put("S/messages/2/id", "toolcall:call-9")], "state_conflict", f"{ROOT}.messages[2].id"),
        ([put("K/parentSessionId", "ses-kid")], "state_conflict", "$.agent.sessions[1].parentSessionId"),
    ],
)
def test_a_state_inside_a_cassette_is_checked_harder(edits: list[Edit], code: str, path: str) -> None:
    state = typed(edited(*edits))
    check_state(state)
    with pytest.raises(CassetteRejected) as caught:
        check_artifact_state(state, file="initial-state.json", root_session_id="ses-root")
    assert (caught.value.code, caught.value.place.path) == (code, path)


def test_two_projected_plan_decisions_may_share_their_id() -> None:  # trap T9
    marker = "client-submit:user:plan-decision:<runtime-operation>"
    message = {"id": marker, "turnId": "turn-a", "role": "user", "kind": "text", "payload": {}}
    state = typed(edited(append("S/messages", message), append("S/messages", message)))
    check_state(state)
    check_artifact_state(state, file="expected-state.json", root_session_id="ses-root")


def test_the_example_is_fit_for_a_cassette() -> None:
    check_artifact_state(typed(state_b()), file="expected-state.json", root_session_id="ses-root")
