"""The state as a portable document, and back (cases of replay-state §21.7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cassettes.core.errors import CassetteRejected, Conflict
from cassettes.core.state import ReplayState, decode_state, encode_state, from_wire, to_wire
from cassettes.host.events import SessionEvent
from cassettes.host.host import Host, NewOperation
from tests.host.conftest import ROOT, TURN, Speaker, create_root, open_host, submit

STATE_B = Path(__file__).parents[1] / "data" / "state-b.json"
RUN = "/run/x"


def state_b(**root: Any) -> ReplayState:
    """State B of the spec; `root` changes members of its root session."""
    document = json.loads(STATE_B.read_text())
    document["agent"]["sessions"][0].update(root)
    return from_wire(document)


def captured(host: Host, session_id: str = ROOT) -> dict[str, Any]:
    return to_wire(host.capture(session_id))["agent"]["sessions"][0]  # type: ignore[no-any-return]


def ended(running: Speaker) -> Host:
    running.turn("completed")
    return running.host


def payload_of(host: Host, message_id: str) -> dict[str, Any]:
    found = [one for one in captured(host)["messages"] if one["id"] == message_id]
    return found[0]["payload"]  # type: ignore[no-any-return]


@pytest.fixture
def empty(tmp_path: Path) -> Host:
    return open_host(tmp_path / "empty.sqlite3")


# ---------------------------------------------------------------------------------------------- capture


def test_a_recorded_session_reads_as_its_history(running: Speaker) -> None:
    running.call("running", payload={"name": "Shell", "input": {"command": "/bin/zsh -lc 'a'", "cwd": "/rec/repo"}})
    running.ask(input={"toolCall": {"toolCallId": "call-1", "title": "/bin/rm x"}}, tool_name="Shell")
    running.call("completed", payload={"output": {"exitCode": 0}})
    running.say("m", status="completed", payload={"text": "Done.", "content": "Done."})
    running.turn("completed", file_changes={"files": [{"path": "/rec/repo/a", "change": "added"}]})
    session = captured(running.host)
    assert [turn["phase"] for turn in session["turns"]] == ["settled"]
    assert session["turns"][0]["fileChanges"]["files"][0]["path"] == "${REPLAY_CWD}/a"
    assert session["turns"][0]["rootProviderTurnId"] == "provider-turn-1"
    assert [one["id"] for one in session["messages"]] == ["client-submit:user:submit-turn-1", "toolcall:call-1", "m"]
    assert session["messages"][1]["payload"]["input"] == {"command": "zsh -lc 'a'"}
    assert session["interactions"][0]["input"] == {"toolCall": {"toolCallId": "call-1", "title": "rm x"}}
    assert session["interactions"][0]["status"] == "superseded"


def test_every_dispatched_turn_has_a_snapshot_of_tutti_mode(running: Speaker) -> None:
    state = ended(running).capture(ROOT)
    (shot,) = state.tutti_mode.turn_snapshots
    assert (shot.turn_id, shot.unconfigured, shot.dispatch_state) == (TURN, True, "accepted")


def test_a_configured_mode_is_in_the_snapshot(host: Host) -> None:
    host.set_mode(ROOT, state="active", source="slash_command", effect=60)
    submit(host)
    host.reject_submit(ROOT, "submit-turn-1", "no")
    state = host.capture(ROOT)
    (activation,), (shot,) = state.tutti_mode.activations, state.tutti_mode.turn_snapshots
    assert (shot.activation_id, shot.revision, shot.effect, shot.preference_version) == (activation.id, 1, 60, 1)
    assert shot.dispatch_state == "prepared"
    with pytest.raises(Conflict):
        host.set_mode(ROOT, state="active", source="badge_remove")


def test_nothing_live_is_captured(running: Speaker) -> None:
    with pytest.raises(CassetteRejected) as refused:
        running.host.capture(ROOT)
    assert (refused.value.code, refused.value.place.path) == ("state_conflict", "$.agent.sessions[0].activeTurnId")


def test_a_child_stands_for_its_root(running: Speaker) -> None:
    running.child(provider_session_id="thread-2")
    running.turn("completed", "child-turn", "child-session")
    state = ended(running).capture("child-session")
    assert [one.id for one in state.agent.sessions] == [ROOT, "child-session"]


def test_places_of_the_session_become_tokens_and_places_again(tmp_path: Path, empty: Host) -> None:  # C91
    host = open_host(tmp_path / "recording.sqlite3")
    create_root(
        host,
        rail_section_kind="project",
        rail_project_path="/rec/repo/app",
        rail_section_key="project:/rec/repo/app",
    )
    state = host.capture(ROOT)
    root = state.agent.root
    assert (root.cwd, root.rail_project_path, root.rail_section_key) == (
        "${REPLAY_CWD}",
        "${REPLAY_CWD}/app",
        "project:${REPLAY_CWD}/app",
    )
    empty.restore(state, replay_root=RUN)
    row = empty.session(ROOT)
    assert row is not None
    assert (row.cwd, row.rail_project_path, row.rail_section_key) == (RUN, "/run/x/app", "project:/run/x/app")


@pytest.mark.parametrize(
    ("member", "value", "becomes"),
    [
        ("locations", [{"path": "/rec/repo/x"}], [{"path": "${REPLAY_CWD}/x"}]),  # C92
        ("paths", ["/rec/repo/x", "b"], ["${REPLAY_CWD}/x", "b"]),  # T7
        ("filePath", "src/a", "src/a"),  # T5
        ("pathStyle", "posix", "posix"),
        ("filePath", "/rec/repo/../repo/./y", "${REPLAY_CWD}/y"),
        ("command", "/bin/zsh x", "/bin/zsh x"),  # C95: only the input's command is shortened
    ],
)
def test_paths_in_a_tool_payload(running: Speaker, member: str, value: Any, becomes: Any) -> None:
    running.call("completed", payload={member: value})
    assert payload_of(ended(running), "toolcall:call-1")[member] == becomes


def test_the_input_of_a_tool_is_projected_like_an_approval(running: Speaker) -> None:  # C95
    given = {"cwd": "/rec/repo", "command": "/bin/zsh -lc 'a'", "title": "/bin/x"}
    running.call("completed", payload={"input": given})
    assert payload_of(ended(running), "toolcall:call-1")["input"] == {"command": "zsh -lc 'a'", "title": "/bin/x"}


@pytest.mark.parametrize("kind", ["tool", "text"])
def test_a_path_outside_the_root_is_reported(running: Speaker, kind: str) -> None:  # C93, C94
    path = {"tool": "/other/z", "text": "/rec/repo/z"}[kind]
    if kind == "tool":
        running.call("completed", payload={"filePath": path})
    else:
        running.say("m", status="completed", payload={"filePath": path})
    with pytest.raises(CassetteRejected) as refused:
        ended(running).capture(ROOT)
    assert refused.value.code == "state_non_portable"
    assert refused.value.place.path == "$.agent.sessions[0].messages[1].payload.filePath"


def test_the_operation_of_a_plan_decision_is_not_in_the_state(host: Host) -> None:  # C96
    submit(host, name="plan-decision:op7")
    host.reject_submit(ROOT, "plan-decision:op7", "no")
    message = captured(host)["messages"][0]
    assert message["id"] == "client-submit:user:plan-decision:<runtime-operation>"
    assert message["payload"]["clientSubmitId"] == "plan-decision:<runtime-operation>"


def test_the_notice_of_a_plan_decision_names_no_operation(running: Speaker) -> None:
    notice = {"noticeKind": "plan_implementation_started"}
    running.host.begin_operation(
        NewOperation(id="op7", session_id=ROOT, kind="plan_decision", turn_id=TURN, payload={"notice": notice})
    )
    running.host.complete_operation("op7", {})
    message = captured(ended(running))["messages"][1]
    assert message["id"] == "plan-decision:<runtime-operation>:status"
    assert message["payload"]["operationId"] == "<runtime-operation>"


def test_generated_images_are_placed_by_the_home_of_their_provider(running: Speaker) -> None:  # C97
    image = "/state/agent/runs/root-session/codex-home/generated_images/1.png"
    running.call("completed", payload={"output": {"savedPath": image, "savedPaths": [image]}})
    host = ended(running)
    state = host.capture(ROOT, provider_home=lambda row: f"/state/agent/runs/{row.id}/codex-home")
    output = state.agent.root.messages[1].payload["output"]
    assert output == {
        "savedPath": "${REPLAY_HOME}/generated_images/1.png",
        "savedPaths": ["${REPLAY_HOME}/generated_images/1.png"],
    }
    with pytest.raises(CassetteRejected):  # an unregistered provider: unchanged, and so not portable
        host.capture(ROOT)


def test_a_canceled_turn_keeps_its_command_without_the_watermark(running: Speaker) -> None:  # C36
    running.turn("canceled", completed_command={"kind": "compact", "status": "canceled"})
    assert captured(running.host)["turns"][0]["completedCommand"] == {"kind": "compact", "status": "canceled"}


def test_windows_paths_below_the_root_become_tokens(tmp_path: Path) -> None:
    host = open_host(tmp_path / "windows.sqlite3")
    create_root(host, cwd="C:\\Users\\me\\repo")
    submit(host)
    speaker = Speaker(host)
    speaker.call("completed", payload={"filePath": "c:\\users\\me\\repo\\src\\a.py"})
    assert payload_of(ended(speaker), "toolcall:call-1")["filePath"] == "${REPLAY_CWD}/src/a.py"


def test_a_directory_behind_a_link_is_below_the_root(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    host = open_host(tmp_path / "linked.sqlite3")
    create_root(host, cwd=str(tmp_path / "link"))
    submit(host)
    speaker = Speaker(host)
    speaker.call("completed", payload={"filePath": str(real / "a.py")})
    assert payload_of(ended(speaker), "toolcall:call-1")["filePath"] == "${REPLAY_CWD}/a.py"


def test_a_captured_document_is_apart_from_what_happens_later(running: Speaker) -> None:
    running.say("m", status="completed", payload={"content": [{"type": "text"}], "text": "a"})
    host = ended(running)
    state = host.capture(ROOT)
    before = encode_state(state)
    state.agent.root.messages[1].payload["content"][0]["type"] = "changed"
    assert encode_state(host.capture(ROOT)) == before


# ---------------------------------------------------------------------------------------------- restore


def test_the_example_of_the_spec_comes_back_byte_by_byte(empty: Host) -> None:
    state = state_b()
    empty.restore(state, replay_root=RUN)
    assert encode_state(empty.capture("ses-root")) == encode_state(state)
    assert empty.session("ses-kid").cwd == RUN  # type: ignore[union-attr]
    assert empty.turn("ses-root", "turn-a").provider_phase == "completed"  # type: ignore[union-attr]
    assert empty.session("ses-root").message_version == 4  # type: ignore[union-attr]
    assert empty.call("ses-root", "turn-a", "call-9").id == "toolcall:call-9"  # type: ignore[union-attr]
    assert empty.is_settled("ses-root")


def test_the_same_graph_again_is_no_conflict_another_one_is(empty: Host) -> None:  # C109
    empty.restore(state_b(), replay_root=RUN)
    assert empty.restore(state_b(), replay_root=RUN).txn_id == ""
    with pytest.raises(Conflict) as other_user:
        empty.restore(state_b(), replay_root=RUN, user_id="somebody else")
    assert other_user.value.code == "host_restore_conflict"
    with pytest.raises(Conflict):
        empty.restore(state_b(title="Changed"), replay_root=RUN)


def test_a_restored_session_goes_on(empty: Host) -> None:
    empty.restore(state_b(), replay_root=RUN)
    names = {"session_id": "ses-root", "turn_id": "turn-c"}
    speaker = Speaker(empty)
    submit_to = {"type": "root_provider_turn.started", "origin": "provider_initiated", "provider_turn_id": "ptn-3"}
    from cassettes.host.events import MessageEvent, RootTurnEvent

    speaker.unit(RootTurnEvent(**names, **submit_to))
    speaker.unit(MessageEvent(type="message.appended", message_id="m", payload={"text": "more"}, **names))
    assert [turn.seq for turn in empty.turns("ses-root")] == [1, 2, 3]
    assert empty.message("ses-root", "m").version == 5  # type: ignore[union-attr]
    with pytest.raises(Conflict):  # a provider Turn of the history cannot begin again
        speaker.unit(RootTurnEvent(**names, **{**submit_to, "provider_turn_id": "ptn-1"}))


@pytest.mark.parametrize("path", ["${REPLAY_CWD}/../out", "${REPLAY_CWD}/a/../../out", "${REPLAY_CWD}/../x-evil"])
def test_a_token_that_leaves_the_root_is_refused(empty: Host, path: str) -> None:  # C98
    with pytest.raises(CassetteRejected) as refused:
        empty.restore(state_b(cwd=path), replay_root=RUN)
    assert (refused.value.code, refused.value.place.path) == ("state_path_escapes", "$.agent.sessions[0].cwd")
    assert empty.sessions() == []


def test_the_replay_root_has_to_be_absolute(empty: Host) -> None:
    with pytest.raises(CassetteRejected) as refused:
        empty.restore(state_b(), replay_root="relative")
    assert refused.value.code == "replay_root_invalid"


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        (("turns", 0, "phase", "bogus"), "state_invalid", "$.agent.sessions[0].turns[0].phase"),
        (("messages", 1, "id", "msg-3"), "state_conflict", "$.agent.sessions[0].messages[2].id"),
        (("interactions", 0, "turnId", "x"), "state_conflict", "$.agent.sessions[0].interactions[0].turnId"),
        (("interactions", 0, "kind", "x"), "state_invalid", "$.agent.sessions[0].interactions[0].kind"),
        (("interactions", 0, "status", "x"), "state_invalid", "$.agent.sessions[0].interactions[0].status"),
    ],
)
def test_a_document_that_no_host_could_have_made_is_refused(
    empty: Host, change: tuple[str, int, str, str], code: str, path: str
) -> None:
    array, index, member, value = change
    document = json.loads(STATE_B.read_text())
    document["agent"]["sessions"][0][array][index][member] = value
    with pytest.raises(CassetteRejected) as refused:
        empty.restore(from_wire(document), replay_root=RUN)
    assert (refused.value.code, refused.value.place.path) == (code, path)
    assert empty.sessions() == []


def test_a_product_entity_that_exists_aborts_the_restore(empty: Host) -> None:
    empty.restore(state_b(), replay_root=RUN)
    document = json.loads(STATE_B.read_text().replace("ses-", "other-").replace("thread-", "tape-"))
    with pytest.raises(Conflict) as refused:
        empty.restore(from_wire(document), replay_root=RUN)
    assert refused.value.place.path == "$.tuttiMode.activations"
    assert [one.id for one in empty.sessions()] == ["ses-root", "ses-kid"]


def test_the_initial_state_of_a_cassette_comes_back(empty: Host, tmp_path: Path) -> None:
    import tarfile

    source = Path(__file__).parents[1] / "data" / "cassettes" / "small-continue.tar.gz"
    with tarfile.open(source) as archive:
        member = next(one for one in archive.getmembers() if one.name.endswith("initial-state.json"))
        stream = archive.extractfile(member)
        assert stream is not None
        data = stream.read()
    state = decode_state(data, file="initial-state.json")
    empty.restore(state, replay_root=RUN)
    root = state.agent.root_session_id
    assert encode_state(empty.capture(root)) == encode_state(state)
    empty.apply([SessionEvent(type="session.updated", session_id=root, title="Later")], cause_ref="unit")
    assert empty.capture(root).agent.root.title == "Later"
