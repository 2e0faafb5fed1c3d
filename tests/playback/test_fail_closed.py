"""One changed byte, one changed order, one changed expectation: a replay stops, and names the place."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from cassettes.artifacts.audit import verify_static
from cassettes.core.errors import CassetteRejected
from cassettes.playback.headless import replay
from tests.samples import CLAUDE, CODEX, cassette_copy, change_data, frames, write_frames

BOTH = pytest.mark.parametrize("stem", [CLAUDE, CODEX])


@BOTH
def test_an_untouched_cassette_replays_equal(stem: str, tmp_path: Path) -> None:
    report = replay(cassette_copy(stem, tmp_path))
    assert report.equal, report.summary
    assert all(layer["verdict"] == "verified" for layer in report.layers)


@BOTH
def test_a_flipped_byte_in_an_outbound_frame_stops_at_that_frame(stem: str, tmp_path: Path) -> None:
    cassette = cassette_copy(stem, tmp_path)
    tape = frames(cassette)
    number, frame = next(
        (number, one)
        for number, one in enumerate(tape, 1)
        if b"The tests fail" in base64.b64decode(one.get("data", ""))
    )
    assert frame["kind"] == "outbound"
    change_data(frame, lambda data: data.replace(b"The tests fail", b"The tests fbil", 1))
    write_frames(cassette, tape)

    report = replay(cassette)

    assert report.error is not None
    assert f"line {number}" in report.error["place"]
    assert "connection-1" in report.error["message"] + report.error["place"]
    assert "fbil" in str(report.error["expected"])
    assert "fail" in str(report.error["found"])
    assert {layer["verdict"] for layer in report.layers} & {"failed", "open"}


@BOTH
def test_a_flipped_byte_in_an_inbound_frame_never_replays_equal(stem: str, tmp_path: Path) -> None:
    cassette = cassette_copy(stem, tmp_path)
    tape = frames(cassette)
    frame = next(one for one in tape if b"I'll run the tests first." in base64.b64decode(one.get("data", "")))
    assert frame["kind"] == "stdout"
    change_data(frame, lambda data: data.replace(b"I'll run", b"I'll rum"))
    write_frames(cassette, tape)

    report = replay(cassette)

    assert report.error is not None
    assert not report.equal
    assert report.error["place"]


def test_two_outbound_frames_in_the_wrong_order_stop_at_the_first(tmp_path: Path) -> None:
    cassette = cassette_copy(CODEX, tmp_path)
    tape = frames(cassette)
    first, second = [number for number, one in enumerate(tape) if one["kind"] == "outbound"][:2]
    tape[first]["data"], tape[second]["data"] = tape[second]["data"], tape[first]["data"]
    write_frames(cassette, tape)

    report = replay(cassette)

    assert report.error is not None
    assert f"line {first + 1}" in report.error["place"]
    assert report.error["expected"] != report.error["found"]


@BOTH
def test_a_changed_expected_value_is_named_by_its_path(stem: str, tmp_path: Path) -> None:
    cassette = cassette_copy(stem, tmp_path)
    path = cassette / "expected-state.json"
    state = json.loads(path.read_text())
    messages = state["agent"]["sessions"][0]["messages"]
    index = next(number for number, one in enumerate(messages) if one["kind"] == "tool_call")
    messages[index]["payload"]["output"]["stdout"] += "!"
    path.write_text(json.dumps(state))

    report = replay(cassette)

    assert report.error is not None
    assert report.error["place"].startswith("expected-state.json")
    assert f"/messages/{index}/payload/output/stdout" in report.error["place"].replace("[", "/").replace(
        "]", ""
    ).replace(".", "/")
    assert str(report.error["expected"]).endswith("!")


@BOTH
def test_the_static_verification_refuses_each_of_these_before_any_replay(stem: str, tmp_path: Path) -> None:
    cassette = cassette_copy(stem, tmp_path)
    tape = frames(cassette)
    change_data(tape[0], lambda data: data.replace(b"request-1", b"request-2") + b" ")
    write_frames(cassette, tape)
    with pytest.raises(CassetteRejected) as refused:
        verify_static(cassette)
    assert refused.value.place.file == "provider/frames.jsonl" or refused.value.place.path
