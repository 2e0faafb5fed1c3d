"""The conformance cases C1-C47 and C61-C62 of cassette-v7 §18: one change of the example each, and the verdict."""

# ruff: noqa: E501  # one case a line

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cassettes.artifacts.audit import verify_static
from cassettes.core.errors import CassetteRejected
from tests.making import edit, lines, reseal, write_lines
from tests.samples import CASSETTES

JsonObject = dict[str, Any]
Change = Callable[[Path], None]

EXAMPLE = CASSETTES / "example"
HASH = "5187b34877eb0c254eb8ccdf06e9a5a49b7f80e289580e023fb5506af84af787"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
ACCEPT = ""


# ------------------------------------------------------------------------------------------------- changes
def manifest(**members: Any) -> Change:
    """Members of `cassette.json`."""
    return lambda cassette: edit(cassette, "cassette.json", lambda value: value.update(members))


def state(change: Callable[[JsonObject], Any]) -> Change:
    """The expected state."""
    return lambda cassette: edit(cassette, "expected-state.json", change)


def plan(change: Callable[[JsonObject], Any]) -> Change:
    """The checkpoint plan."""
    return lambda cassette: edit(cassette, "checkpoint-plan.json", change)


def point(index: int, change: Callable[[JsonObject], Any]) -> Change:
    """One checkpoint."""
    return plan(lambda value: change(value["checkpoints"][index]) and None)


def cursor(index: int, *positions: tuple[str, int, int], activity: int | None = None) -> Change:
    """The cursor of one checkpoint."""

    def change(value: JsonObject) -> None:
        if activity is not None:
            value["cursor"]["activityEventSequence"] = activity
        if positions:
            names = ("connectionId", "chunkSeq", "unitIndex")
            value["cursor"]["providerConnections"] = [dict(zip(names, one, strict=True)) for one in positions]

    return point(index, change)


def events(change: Callable[[list[JsonObject]], Any]) -> Change:
    """The activity timeline; `change` may give another list."""

    def apply(cassette: Path) -> None:
        value = lines(cassette, "activity-events.jsonl")
        changed = change(value)
        write_lines(cassette, "activity-events.jsonl", value if changed is None else changed)

    return apply


def event(index: int, **members: Any) -> Change:
    """Members of one event; None takes one away."""

    def change(value: list[JsonObject]) -> None:
        for name, member in members.items():
            if member is None:
                value[index].pop(name, None)
            else:
                value[index][name] = member

    return events(change)


def payload(index: int, **members: Any) -> Change:
    """Members of the payload of one event."""
    return events(lambda value: value[index]["payload"].update(members))


def text(name: str, old: str, new: str, count: int = 1) -> Change:
    """A piece of the text of a file."""

    def apply(cassette: Path) -> None:
        content = (cassette / name).read_text()
        assert old in content
        (cassette / name).write_text(content.replace(old, new, count))

    return apply


def both(*changes: Change) -> Change:
    """Several changes."""

    def apply(cassette: Path) -> None:
        for change in changes:
            change(cassette)

    return apply


def blob(
    name: str = "", data: bytes = PNG, *, file: bool = True, content: bytes | None = None, **members: Any
) -> Change:
    """A prompt attachment with its file."""

    def apply(cassette: Path) -> None:
        digest = hashlib.sha256(data).hexdigest()
        entry = {
            "kind": "agent-prompt-attachment",
            "sha256": name or digest,
            "sizeBytes": len(data),
            "agentSessionId": "0d6f0c5e-7a51-4b8e-9a43-2f1f6d1c0a01",
            "attachmentId": "attachment-1",
            "mimeType": "image/png",
            **members,
        }
        entry = {key: value for key, value in entry.items() if value is not None}
        edit(cassette, "blobs/manifest.json", lambda value: value["blobs"].append(entry))
        if file:
            (cassette / "blobs" / "sha256").mkdir()
            (cassette / "blobs" / "sha256" / digest).write_bytes(data if content is None else content)
        listed = {"path": f"blobs/sha256/{digest}", "role": "referenced-blob", "sizeBytes": len(data), "sha256": digest}
        edit(cassette, "cassette.json", lambda value: value["files"].append(listed))

    return apply


def generated(path: str, mime: str = "image/png") -> Change:
    """A generated image."""
    return blob(kind="agent-generated-image", attachmentId=None, relativePath=path, mimeType=mime)


def frame(connection: str, number: int) -> JsonObject:
    """A frame of another connection."""
    data = base64.b64encode(b'{"id":1,"method":"initialize","params":{}}\n').decode()
    return {
        "connectionId": connection,
        "chunkSeq": 1,
        "globalSeq": number,
        "elapsedMs": 0,
        "kind": "outbound",
        "data": data,
    }


def connections(*names: str) -> Change:
    """More connections on the tape, each with one frame."""

    def apply(cassette: Path) -> None:
        def add(value: JsonObject) -> None:
            for ordinal, name in enumerate(names, 2):
                first = dict(value["connections"][0])
                first.update(connectionId=name, launchOrdinal=ordinal, cwdToken=f"${{SESSION_CWD:x:{ordinal}}}")
                value["connections"].append(first)

        edit(cassette, "provider/manifest.json", add)
        taken = lines(cassette, "provider/frames.jsonl")
        taken += [frame(name, len(taken) + number) for number, name in enumerate(names, 1)]
        write_lines(cassette, "provider/frames.jsonl", taken)

    return apply


def initial(cassette: Path) -> None:
    """An initial state, listed."""
    shutil.copy(cassette / "expected-state.json", cassette / "initial-state.json")
    listed = {"path": "initial-state.json", "role": "semantic-initial-state", "sizeBytes": 0, "sha256": "0" * 64}
    edit(cassette, "cassette.json", lambda value: value["files"].append(listed))


def many_checkpoints(count: int) -> Change:
    """So many checkpoints that the number in the id gets longer."""

    def change(value: JsonObject) -> None:
        taken = value["checkpoints"]
        pattern = taken[1]
        for index in range(len(taken), count):
            one = json.loads(json.dumps(pattern))
            one["id"], one["index"] = f"checkpoint-{index:04}", index
            one["cursor"]["activityEventSequence"] = 2
            one["cursor"]["providerConnections"][0].update(chunkSeq=10 + index, unitIndex=1)
            taken.append(one)

    return plan(change)


TRIGGER = "$.checkpoints[1].trigger"
BOOT = {"source": "bootstrap"}
OTHER = {"connectionId": "connection-2", "chunkSeq": 1, "unitIndex": 1, "eventIndex": 1}
_PREDICATE = {"type": "turn.phase", "subject": 1, "equals": "running"}

CASES: list[tuple[str, Change, str]] = [
    ("C6 schema version 6", manifest(schemaVersion=6), "manifest_schema_version"),
    ("C6 schema version 8", manifest(schemaVersion=8), "manifest_schema_version"),
    ("C6 a text", manifest(schemaVersion="7"), "record_type_invalid"),
    ("C7 another limit", manifest(maxTotalBytes=402653183), "inventory_limit"),
    ("C8 inventory reversed", lambda c: edit(c, "cassette.json", lambda v: v["files"].reverse()), ACCEPT),
    ("C8 empty role", lambda c: edit(c, "cassette.json", lambda v: v["files"][0].update(role="")), ACCEPT),
    ("C8 another letter case", text("cassette.json", '"stateFormat"', '"STATEFORMAT"'), ACCEPT),
    ("C9 wrong role", lambda c: edit(c, "cassette.json", lambda v: v["files"][2].update(role="activity-events")), "inventory_role"),
    ("C10 unclean path", text("cassette.json", '"checkpoint-plan.json"', '"./checkpoint-plan.json"'), "inventory_unrelated_file"),
    ("C11 scope", manifest(workspaceId=None), "scope_member_forbidden"),
    ("C11 scope of an event", lambda c: events(lambda v: v[0].update(workspaceId=None))(c), "scope_member_forbidden"),
    ("C11 scope inside a payload", payload(0, workspaceId="w"), ACCEPT),
    ("C12 120 characters", manifest(name="é" * 120), ACCEPT),
    ("C12 121 characters", manifest(name="é" * 121), "manifest_name_invalid"),
    ("C12 only spaces", manifest(name="   "), "manifest_name_invalid"),
    ("C13 untrimmed default", text("cassette.json", '"normal"', '" normal"'), "manifest_composer_default"),
    ("C13 no default", text("cassette.json", ',\n      "speed": "normal"', ""), "manifest_composer_default"),
    ("C14 initial state too much", initial, "inventory_initial_state"),
    ("C14 initial state too little", manifest(mode="continue-session"), "inventory_required_missing"),
    ("C16 the largest blob", blob(data=bytes(20_971_520)), ACCEPT),
    ("C16 a larger blob", blob(data=bytes(20_971_521)), "blob_entry_invalid"),
    ("C17 gif", blob(mimeType="image/gif"), "blob_entry_invalid"),
    ("C17 a path as id", blob(attachmentId="a/b"), "blob_entry_invalid"),
    ("C17 unclean path", generated("generated_images/a/../b.png"), "blob_entry_invalid"),
    ("C17 another extension", generated("generated_images/a.jpeg", "image/jpeg"), "blob_entry_invalid"),
    ("C17 a clean path", generated("generated_images/a.png"), ACCEPT),
    ("C18 upper-case digest", blob(name=hashlib.sha256(PNG).hexdigest().upper()), ACCEPT),
    ("C19 no file", blob(file=False), "disk_file_missing"),
    ("C19 another content", blob(content=PNG[:-1] + b"x"), "blob_content_mismatch"),
    ("C20 order", events(lambda v: v.reverse()), "activity_sequence_gap"),
    ("C20 gap", event(1, sequence=3), "activity_sequence_gap"),
    ("C20 from 0", event(0, sequence=0), "activity_event_invalid"),
    ("C21 blank line", text("activity-events.jsonl", "}\n{", "}\n\n{"), "activity_line_blank"),
    ("C21 no final newline", lambda c: (c / "activity-events.jsonl").write_bytes((c / "activity-events.jsonl").read_bytes()[:-1]), ACCEPT),
    ("C21 CR LF", text("activity-events.jsonl", "\n", "\r\n", 2), ACCEPT),
    ("C22 caused by itself", event(1, causedByEventId="event-2"), "activity_cause_invalid"),
    ("C22 caused by nothing", event(1, causedByEventId=None), "activity_cause_missing"),
    ("C22 caused by a stimulus", both(event(0, kind="direct-stimulus", type="session.send")), "activity_cause_invalid"),
    ("C23 an effect of another intent", event(1, type="turn/cancel"), "activity_effect_not_allowed"),
    ("C24 another correlation", event(1, correlationId="submit-2"), "activity_correlation_differs"),
    ("C24 one correlation", event(1, correlationId=None), ACCEPT),
    ("C25 no effect", events(lambda v: v[:1]), "activity_timeline_incomplete"),
    ("C27 absolute folder", payload(0, cwd="/srv/p"), "activity_path_not_portable"),
    ("C27 file address", payload(0, cwd="file:///p"), "activity_path_not_portable"),
    ("C27 a way out", payload(0, cwd="${REPLAY_CWD}/../x"), "activity_path_not_portable"),
    ("C28 project of the machine", payload(0, railSectionKey="project:/srv/p"), "activity_path_not_portable"),
    ("C28 conversations", payload(0, railSectionKey="conversations"), ACCEPT),
    ("C29 back in time", event(1, occurredAtUnixMs=1), "activity_time_decreases"),
    ("C29 no outcome", events(lambda v: v[1]["payload"].pop("outcome") and None), "activity_effect_outcome"),
    ("C30 no events", lambda c: (c / "activity-events.jsonl").write_bytes(b""), "activity_timeline_empty"),
    ("C31 plan version", plan(lambda v: v.update(schemaVersion=1)), "checkpoint_plan_invalid"),
    ("C31 Cassette version", plan(lambda v: v.update(cassetteSchemaVersion=6)), "checkpoint_plan_invalid"),
    ("C32 short id", point(1, lambda v: v.update(id="checkpoint-1")), "checkpoint_plan_invalid"),
    ("C32 gap", point(3, lambda v: v.update(index=4, id="checkpoint-0004")), "checkpoint_plan_invalid"),
    ("C32 10 001 checkpoints", many_checkpoints(10_001), ACCEPT),
    ("C33 kind without its tag", point(1, lambda v: v.update(tags=["turn.terminal"])), "checkpoint_plan_invalid"),
    ("C33 unknown kind", point(1, lambda v: v.update(kind="turn.done", tags=["turn.done"])), "checkpoint_plan_invalid"),
    ("C34 activity back", cursor(3, activity=1), "checkpoint_plan_invalid"),
    ("C34 provider back", cursor(2, ("connection-1", 7, 1)), "checkpoint_plan_invalid"),
    ("C34 connection dropped", point(2, lambda v: v["cursor"].update(providerConnections=[])), "checkpoint_plan_invalid"),
    ("C35 equal cursors", cursor(2, activity=1), "checkpoint_plan_invalid"),
    ("C38 trigger after the cursor", cursor(3, ("connection-1", 9, 1)), "checkpoint_plan_invalid"),
    ("C38 event index 0", point(3, lambda v: v["trigger"]["position"].update(eventIndex=0)), "checkpoint_plan_invalid"),
    ("C39 split", both(cursor(2, ("connection-1", 8, 1), activity=1), point(2, lambda v: v["trigger"].update(afterActivityEventSequence=1))), "checkpoint_plan_invalid"),
    ("C40 trigger elsewhere", point(2, lambda v: v["trigger"].update(afterActivityEventSequence=1)), "checkpoint_plan_invalid"),
    ("C41 bootstrap later", point(0, lambda v: v["trigger"].update(afterActivityEventSequence=1)), "checkpoint_plan_invalid"),
    ("C41 bootstrap with a cursor", cursor(0, ("connection-1", 3, 1)), ACCEPT),
    ("C42 second bootstrap", point(2, lambda v: v.update(trigger=BOOT)), "checkpoint_plan_invalid"),
    ("C43 short fingerprint", point(1, lambda v: v["trigger"].update(fingerprint="sha256:" + "0" * 63)), "checkpoint_plan_invalid"),
    ("C43 another fingerprint", point(1, lambda v: v["trigger"].update(fingerprint="sha256:" + "0" * 64)), ACCEPT),
    ("C44 equal subjects", point(1, lambda v: v["subjects"].append(v["subjects"][0])), "checkpoint_plan_invalid"),
    ("C44 subject out of range", point(1, lambda v: v["readiness"].update(all=[_PREDICATE])), "checkpoint_plan_invalid"),
    ("C44 blank value", point(1, lambda v: v["readiness"]["all"][0].update(equals=" ")), "checkpoint_plan_invalid"),
    ("C45 null lists", point(0, lambda v: (v.update(readiness=None, subjects=None), v["cursor"].update(providerConnections=None))), ACCEPT),
    ("C46 another last kind", point(3, lambda v: v.update(kind="tool.completed", tags=["tool.completed"])), ACCEPT),
    ("C47 a Turn as the root", point(2, lambda v: v["subjects"][0].update(kind="turn")), "checkpoint_plan_invalid"),
    ("C47 two positions", point(1, lambda v: v["subjects"][0]["origin"].update(activityEventSequence=1)), "checkpoint_plan_invalid"),
    ("C47 no pointer", point(2, lambda v: v["subjects"][0].update(origin={"source": "initial-state", "initialStatePath": "agent"})), "checkpoint_plan_invalid"),
    ("C47 untrimmed discriminator", point(1, lambda v: v["subjects"][0].update(discriminator="1 ")), "checkpoint_plan_invalid"),
    ("C62 absolute path", state(lambda v: v["agent"]["sessions"][0].update(paths=["/srv/p"])), "state_non_portable"),
    ("C62 active Turn", state(lambda v: v["agent"]["sessions"][0].update(activeTurnId="turn-a")), "state_conflict"),
    ("C62 message of no Turn", state(lambda v: v["agent"]["sessions"][0]["messages"][0].update(turnId="turn-z")), "state_conflict"),
    ("C62 no issues", state(lambda v: v.update(issues=None)), "state_invalid"),
    ("C62 a path in text", state(lambda v: v["agent"]["sessions"][0]["messages"][1]["payload"].update(text="/srv/p")), ACCEPT),
    ("H1 an id that leads out", manifest(id="../evil"), "manifest_id_unsafe"),
    ("H2 scope in capitals", manifest(ScopeID=1), "scope_member_forbidden"),
    ("H4 no target", manifest(agentTargetId=""), "manifest_target_unregistered"),
    ("H9 an event that is not there", point(1, lambda v: v["subjects"].append({"kind": "goal", "origin": {"source": "activity-event", "activityEventSequence": 9}})), "checkpoint_plan_invalid"),
    ("H9 a connection that is not there", point(1, lambda v: v["subjects"].append({"kind": "message", "origin": {"source": "provider-observation", "providerObservation": OTHER}})), "checkpoint_plan_invalid"),
    ("H10 another root", both(manifest(rootAgentSessionId="another")), "state_root_mismatch"),
    ("H13 a drive path", state(lambda v: v["agent"]["sessions"][0].update(projectPath="C:\\x")), "state_non_portable"),
]  # fmt: skip


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example of the spec, to be changed."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "example"))


def code_of(cassette: Path) -> str:
    """The code of the rejection, or ""."""
    try:
        verify_static(cassette)
    except CassetteRejected as rejected:
        assert str(rejected.place), "every rejection names its place"
        return rejected.code
    return ACCEPT


@pytest.mark.parametrize(("change", "code"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_one_change_gets_its_verdict(change: Change, code: str, example: Path) -> None:
    change(example)
    reseal(example)
    assert code_of(example) == code


def test_c1_the_example_is_accepted_and_has_its_hash(example: Path) -> None:
    report = verify_static(example)
    assert report.manifest_sha256 == HASH
    assert report.notes == []


def test_c15_the_expected_hash_may_be_in_capitals(example: Path) -> None:
    assert verify_static(example, manifest_sha256=HASH.upper()).manifest_sha256 == HASH
    with pytest.raises(CassetteRejected, match="manifest_hash_mismatch"):
        verify_static(example, manifest_sha256="0" * 64)


def test_c2_a_changed_byte_is_named(example: Path) -> None:
    path = example / "expected-state.json"
    path.write_bytes(path.read_bytes().replace(b"Say hi", b"Say ho"))
    with pytest.raises(CassetteRejected) as rejected:
        verify_static(example)
    assert (rejected.value.code, rejected.value.place.file) == ("disk_file_mismatch", "expected-state.json")


def test_c3_a_file_too_many_is_refused(example: Path) -> None:
    for name in ("desktop.log", "provider/manifest.json.tmp"):
        (example / name).write_text("x")
        assert code_of(example) == "disk_unlisted_file"
        (example / name).unlink()


def test_c4_finder_files_and_empty_folders_do_not_matter(example: Path) -> None:
    (example / ".DS_Store").write_text("x")
    (example / "blobs" / ".DS_Store").write_text("x")
    (example / "empty" / "deep").mkdir(parents=True)
    assert code_of(example) == ACCEPT


def test_c5_a_link_is_refused_whatever_it_points_to(example: Path, tmp_path: Path) -> None:
    frames = example / "provider" / "frames.jsonl"
    frames.rename(tmp_path / "frames.jsonl")
    frames.symlink_to(tmp_path / "frames.jsonl")
    assert code_of(example) == "file_irregular"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"schemaVersion": 7', '"schemaVersion": 7.0', "record_type_invalid"),
        ('"schemaVersion": 7', '"schemaVersion": 1e0', "record_type_invalid"),
        ('"schemaVersion": 7,', '"schemaVersion": 6, "schemaVersion": 7,', "json_duplicate_member"),
        ('"createdAtUnixMs": 1767225601000', '"createdAtUnixMs": 99999999999999999999', "record_type_invalid"),
        ('"createdAtUnixMs": 1767225601000', '"createdAtUnixMs": NaN', "json_invalid"),
        ('"tiny example"', '"tiny \\ud800"', ACCEPT),
        ("{", "\ufeff{", "json_invalid"),
        ("}\n", "} x\n", "json_invalid"),
    ],
)
def test_the_json_of_the_manifest_is_read_strictly(old: str, new: str, code: str, example: Path) -> None:
    content = (example / "cassette.json").read_text()
    before, found, after = content.rpartition(old) if old == "}\n" else content.partition(old)
    assert found
    (example / "cassette.json").write_text(before + new + after)
    assert code_of(example) == code


@pytest.mark.parametrize("depth", [500, 9_900])
@pytest.mark.parametrize("name", ["expected-state.json", "activity-events.jsonl", "checkpoint-plan.json"])
def test_values_may_be_nested_ten_thousand_deep(depth: int, name: str, example: Path) -> None:
    content = (example / name).read_text()
    (example / name).write_text(content.replace("{", '{"unknown":' + "[" * depth + "]" * depth + ",", 1))
    reseal(example)
    assert code_of(example) == ACCEPT


@pytest.mark.parametrize("name", ["expected-state.json", "activity-events.jsonl", "checkpoint-plan.json"])
def test_deeper_values_are_refused(name: str, example: Path) -> None:
    content = (example / name).read_text()
    (example / name).write_text(content.replace("{", '{"unknown":' + "[" * 10_100 + "]" * 10_100 + ",", 1))
    reseal(example)
    assert code_of(example) == "json_too_deep"


def test_c7_a_total_that_is_not_the_sum_is_refused(example: Path) -> None:
    edit(example, "cassette.json", lambda value: value.update(totalBytes=value["totalBytes"] + 1))
    assert code_of(example) == "inventory_total_bytes"


def test_c26_a_stop_needs_no_effect(example: Path) -> None:
    stop = {
        "schemaVersion": 7,
        "sequence": 3,
        "kind": "intent",
        "type": "session/stopRequested",
        "eventId": "event-3",
        "payload": {},
        "occurredAtUnixMs": 1767225600200,
    }
    events(lambda value: value.append(stop))(example)
    reseal(example)
    assert code_of(example) == ACCEPT


def test_c36_connections_are_in_byte_order(example: Path) -> None:
    connections("connection-2", "connection-10")(example)
    for order, verdict in (
        (["connection-1", "connection-10", "connection-2"], ACCEPT),
        (["connection-1", "connection-2", "connection-10"], "checkpoint_plan_invalid"),
    ):
        cursor(3, *[(name, 9 if name == "connection-1" else 0, 2 if name == "connection-1" else 0) for name in order])(
            example
        )
        reseal(example)
        assert code_of(example) == verdict


@pytest.mark.parametrize("position", [("connection-1", 9, 2), ("connection-2", 1, 1)])
def test_c37_a_cursor_with_two_connections_may_have_a_trigger_on_either(
    position: tuple[str, int, int], example: Path
) -> None:
    connections("connection-2")(example)
    cursor(3, ("connection-1", 9, 2), ("connection-2", 1, 1))(example)
    names = ("connectionId", "chunkSeq", "unitIndex")
    where = {**dict(zip(names, position, strict=True)), "eventIndex": 1}
    point(3, lambda value: value["trigger"].update(position=where))(example)
    reseal(example)
    assert code_of(example) == ACCEPT
