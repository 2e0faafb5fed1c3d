"""Where the bytes are: every account adds up, and the largest come first."""

from __future__ import annotations

import base64
from pathlib import Path

from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.size_evidence import SizeEvidence, message_type, size_evidence
from tests.making import grow, lines, reseal, write_lines
from tests.samples import CLAUDE, CODEX, cassette_copy


def evidence(cassette: Path) -> SizeEvidence:
    """The account of a Cassette."""
    return size_evidence(CassetteFolder(cassette))


def test_every_account_adds_up(tmp_path: Path) -> None:
    for stem in (CODEX, CLAUDE):
        cassette = cassette_copy(stem, tmp_path)
        found = evidence(cassette)
        assert found.total_bytes == sum(size for _, size in found.files)
        assert found.total_bytes == sum(path.stat().st_size for path in cassette.rglob("*") if path.is_file())
        frames = lines(cassette, "provider/frames.jsonl")
        on_disk = (cassette / "provider" / "frames.jsonl").stat().st_size
        for sums in (found.connections, found.kinds):
            assert sum(one.count for _, one in sums) == len(frames)
            assert sum(one.stored_bytes for _, one in sums) == on_disk
        payload = sum(len(base64.b64decode(frame.get("data", ""))) for frame in frames)
        assert sum(one.payload_bytes for _, one in found.message_types) == payload


def test_the_largest_come_first(tmp_path: Path) -> None:
    cassette = cassette_copy(CODEX, tmp_path)
    big = b'{"method":"item/completed","params":{"item":{"type":"commandExecution","text":"' + b"x" * 50_000 + b'"}}}\n'
    grow(cassette, 1 << 20, lambda number: big)
    found = evidence(cassette)
    assert found.files[0][0] == "provider/frames.jsonl"
    assert found.message_types[0][0] == "← item/completed commandExecution"
    assert len(found.largest_frames) == 10
    sizes = [frame.stored_bytes for frame in found.largest_frames]
    assert sizes == sorted(sizes, reverse=True)
    assert found.largest_frames[0].message_type == "← item/completed commandExecution"


def test_a_message_over_several_frames_is_one_of_its_type(tmp_path: Path) -> None:
    cassette = cassette_copy(CODEX, tmp_path)
    before = dict(evidence(cassette).message_types)
    frames = lines(cassette, "provider/frames.jsonl")
    for number, part in enumerate((b'{"method":"a/b",', b'"params":', b"{}}\n"), len(frames) + 1):
        frame = {**frames[-1], "globalSeq": number, "chunkSeq": number, "kind": "stdout"}
        frames.append({**frame, "data": base64.b64encode(part).decode()})
    write_lines(cassette, "provider/frames.jsonl", frames)
    reseal(cassette)
    after = dict(evidence(cassette).message_types)
    added = after.pop("← a/b")
    assert (added.count, added.payload_bytes) == (1, len(b'{"method":"a/b","params":{}}\n'))
    assert after == before


def test_message_types_are_named_as_their_protocols_name_them() -> None:
    assert message_type(b'{"method":"turn/started","params":{}}') == "turn/started"
    assert message_type(b'{"method":"x","params":{"item":{"type":"agentMessage"}}}') == "x agentMessage"
    assert message_type(b'{"id":1,"result":{}}') == "response"
    assert message_type(b'{"version":8,"type":"assistant_delta","payload":{}}') == "assistant_delta"
    assert message_type(b'{"method":"x","params":[1]}') == "x"
    assert message_type(b"no JSON") == "other"
