"""The fault matrix: drop, duplicate, reorder, alter or truncate, on each lane, at every place: the replay stops.

The sequences are made right again after each fault, so it is the replay that has to notice, not the static audit.
What a replay may rightly not notice stands in `harmless`.
"""

from __future__ import annotations

import base64
import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cassettes.playback.headless import ReplayReport, replay
from tests.making import lines, write_lines
from tests.samples import CLAUDE, CODEX, cassette_copy, change_data

JsonObject = dict[str, Any]
Items = list[JsonObject]

FRAMES, EVENTS = "provider/frames.jsonl", "activity-events.jsonl"
CODES = {
    ("outbound", "drop"): {"outbound_mismatch", "checkpoint_trigger_missing", "checkpoint_trigger_mismatch"},
    ("outbound", "duplicate"): {"effect_result_mismatch", "outbound_mismatch"},
    ("outbound", "reorder"): {"outbound_mismatch", "checkpoint_provider_overshot", "effect_result_mismatch"},
    ("outbound", "truncate"): {"outbound_after_end"},
    ("stdout", "drop"): {
        "effect_result_mismatch",
        "checkpoint_trigger_missing",
        "checkpoint_trigger_mismatch",
        "outbound_missing",
        "checkpoint_readiness_timeout",
    },
    ("stdout", "duplicate"): {
        "checkpoint_provider_overshot",
        "checkpoint_trigger_missing",
        "checkpoint_trigger_mismatch",
    },
    ("stdout", "reorder"): {
        "effect_result_mismatch",
        "checkpoint_trigger_missing",
        "checkpoint_trigger_mismatch",
        "agent_session_replay_transport_mismatch",
        "outbound_missing",
    },
    ("stdout", "truncate"): {"effect_result_mismatch", "checkpoint_readiness_timeout"},
    ("activity", "drop"): {"effect_unmatched", "activity_stalled", "checkpoint_readiness_timeout"},
    ("activity", "duplicate"): {"effect_unmatched", "activity_stalled"},
    ("activity", "reorder"): {"effect_unmatched", "activity_stalled"},
    ("activity", "truncate"): {"checkpoint_readiness_timeout", "outbound_missing"},
}


def harmless(fault: str, items: Items, index: int) -> bool:
    """What no replay can notice.

    The same activation twice: the engine takes it once (and the static audit refuses a second event with its id). A
    second terminal message after the end. A send that waits for the frame before it instead of after it, as long as
    that frame is not caused by the send (provider-tape §9 step 3).
    """
    if fault == "duplicate":
        return index == 0 if "sequence" in items[index] else index == len(items) - 1
    return fault == "reorder" and items[index]["kind"] == "outbound" and items[index + 1]["kind"] == "stdout"


FAULTS: dict[str, Callable[[Items, int], None]] = {
    "drop": lambda items, index: items.__delitem__(index),
    "duplicate": lambda items, index: items.insert(index, copy.deepcopy(items[index])),
    "reorder": lambda items, index: items.__setitem__(slice(index, index + 2), items[index : index + 2][::-1]),
    "truncate": lambda items, index: items.__delitem__(slice(index, None)),
}


def in_sequence(items: Items) -> None:
    """Make the sequences right again."""
    chunks: Counter[str] = Counter()
    for number, item in enumerate(items, 1):
        if "sequence" in item:
            item["sequence"] = number
        else:
            chunks[item["connectionId"]] += 1
            item.update(globalSeq=number, chunkSeq=chunks[item["connectionId"]])


def faulty(cassette: Path, lane: str, fault: str) -> Iterator[tuple[int, ReplayReport, bool]]:
    """(index, what the replay says, may it be equal) for the fault at every place of a lane."""
    name = EVENTS if lane == "activity" else FRAMES
    items = lines(cassette, name)
    for index, item in enumerate(items):
        if (lane != "activity" and item["kind"] != lane) or (fault == "reorder" and index + 1 == len(items)):
            continue
        changed = copy.deepcopy(items)
        FAULTS[fault](changed, index)
        in_sequence(changed)
        write_lines(cassette, name, changed)
        yield index, replay(cassette), harmless(fault, items, index)


@pytest.mark.parametrize("stem", [CLAUDE, CODEX])
@pytest.mark.parametrize(("lane", "fault"), sorted(CODES))
def test_a_fault_at_any_place_of_a_lane_stops_the_replay(lane: str, fault: str, stem: str, tmp_path: Path) -> None:
    cassette = cassette_copy(stem, tmp_path)
    noticed = 0
    for index, report, may_be_equal in faulty(cassette, lane, fault):
        if report.error is None:
            assert may_be_equal, f"{lane} {index}"
            continue
        noticed += 1
        assert report.verdict in CODES[lane, fault], f"{lane} {index}: {report.summary}"
        assert report.error["place"], report.summary
    assert noticed


ALTERED = {
    CLAUDE: {
        "outbound": (b"The tests fail", b"The texts fail", "outbound_mismatch"),
        "stdout": (b"I'll run the tests", b"I'll run the texts", "agent_session_replay_transport_mismatch"),
        "a status": (b'"turn_completed"', b'"turn_failed"', "checkpoint_trigger_mismatch"),
    },
    CODEX: {
        "outbound": (b"The tests fail", b"The texts fail", "outbound_mismatch"),
        "stdout": (b"I'll run the tests", b"I'll run the texts", "agent_session_replay_transport_mismatch"),
        "a status": (b'"status":"completed"', b'"status":"failed"', "checkpoint_trigger_mismatch"),
    },
}


@pytest.mark.parametrize("stem", [CLAUDE, CODEX])
@pytest.mark.parametrize("what", ["outbound", "stdout", "a status"])
def test_an_altered_frame_stops_the_replay_with_its_code(what: str, stem: str, tmp_path: Path) -> None:
    old, new, code = ALTERED[stem][what]
    cassette = cassette_copy(stem, tmp_path)
    taken = lines(cassette, FRAMES)
    kind = "outbound" if what == "outbound" else "stdout"
    touched = [one for one in taken if one["kind"] == kind and old in base64.b64decode(one.get("data", ""))]
    for frame in touched:
        change_data(frame, lambda data: data.replace(old, new))
    assert touched
    write_lines(cassette, FRAMES, taken)
    assert replay(cassette).verdict == code


@pytest.mark.parametrize("stem", [CLAUDE, CODEX])
@pytest.mark.parametrize("name", [EVENTS, "expected-state.json"])
def test_an_altered_prompt_of_timeline_or_state_stops_the_replay(name: str, stem: str, tmp_path: Path) -> None:
    cassette = cassette_copy(stem, tmp_path)
    path = cassette / name
    assert "The tests fail" in path.read_text()
    path.write_text(path.read_text().replace("The tests fail", "The texts fail"))
    json.loads(path.read_text().splitlines()[0] if name == EVENTS else path.read_text())
    assert not replay(cassette).equal
