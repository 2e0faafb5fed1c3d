"""A transcript becomes a Cassette by the ordinary recording, and that Cassette replays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import InputRejected, RepriseError
from cassettes.playback.headless import replay
from cassettes.transcripts.importing import import_transcript
from cassettes.transcripts.reading import read_transcript
from tests.samples import CLAUDE, CODEX, PROVIDERS, SHARED, transcripts


@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
def test_every_sample_becomes_a_cassette_that_replays_equal(path: Path, tmp_path: Path) -> None:
    made = import_transcript(path, ArtifactStore(tmp_path))
    assert verify_static(made.path).manifest.id == made.cassette_id
    report = replay(made.path)
    assert report.equal, report.summary


def test_the_same_file_is_the_same_cassette(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "a")
    first = import_transcript(PROVIDERS / f"{CODEX}.jsonl", store)
    again = import_transcript(PROVIDERS / f"{CODEX}.jsonl", store)
    elsewhere = import_transcript(PROVIDERS / f"{CODEX}.jsonl", ArtifactStore(tmp_path / "b"))
    assert (first.created, again.created) == (True, False)
    assert first.cassette_id == again.cassette_id == elsewhere.cassette_id
    names = sorted(path.relative_to(first.path) for path in first.path.rglob("*") if path.is_file())
    assert [(first.path / name).read_bytes() for name in names] == [
        (elsewhere.path / name).read_bytes() for name in names
    ]


@pytest.mark.parametrize("stem", [CLAUDE, CODEX])
def test_recorded_times_survive_exactly(stem: str, tmp_path: Path) -> None:
    path = PROVIDERS / f"{stem}.jsonl"
    script = read_transcript(path)
    folder = CassetteFolder(import_transcript(path, ArtifactStore(tmp_path)).path)
    asked = [event for event in folder.events() if event.type in ("activation/requested", "submit/requested")]
    assert [event.occurred_at_unix_ms for event in asked] == [turn.at for turn in script.turns]
    last = list(folder.frames())[-1]
    assert script.turns[0].at + last.elapsed_ms == script.ended


def test_a_malformed_line_is_named_and_loses_nothing_else(tmp_path: Path) -> None:
    lines = (PROVIDERS / f"{CLAUDE}.jsonl").read_text().splitlines()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([*lines[:6], '{"type": "user", "mess', *lines[6:]]) + "\n")
    made = import_transcript(broken, ArtifactStore(tmp_path / "home"))
    assert [(one.file, one.line) for one in made.report.problems] == [("broken.jsonl", 7)]
    assert made.records == len(lines)
    assert replay(made.path).equal


def test_what_is_not_understood_is_counted_and_named(tmp_path: Path) -> None:
    lines = (PROVIDERS / f"{CODEX}.jsonl").read_text().splitlines()
    record = json.dumps(
        {"timestamp": json.loads(lines[0])["timestamp"], "type": "moon_phase", "payload": {"type": "full"}}
    )
    odd = tmp_path / "odd.jsonl"
    odd.write_text("\n".join([*lines, record]) + "\n")
    made = import_transcript(odd, ArtifactStore(tmp_path / "home"))
    assert sum(made.report.unknown.values()) == 1
    assert "moon_phase" in next(iter(made.report.unknown))


@pytest.mark.parametrize("text", ["", "just some text\nand more\n", '{"a": 1}\n', "\x00\x01\x02"])
def test_what_is_no_transcript_is_refused_and_leaves_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(text)
    store = ArtifactStore(tmp_path / "home")
    with pytest.raises(InputRejected) as refused:
        import_transcript(path, store)
    assert refused.value.code.startswith("transcript_")
    assert list(store.ids()) == []


def test_public_transcripts_are_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints the share that becomes a published, verifying Cassette; what is refused must say why."""
    found = sorted(SHARED.rglob("*.*json*")) if SHARED.is_dir() else []
    found = [
        path
        for path in found
        if path.suffix in (".jsonl", ".ndjson")
        and ("transcript" in path.as_posix().removeprefix(SHARED.as_posix()) or "rollout" in path.name)
    ]
    store = ArtifactStore(tmp_path)
    equal, refused = 0, []
    for path in found:
        try:
            report = replay(import_transcript(path, store).path)
        except RepriseError as error:
            assert error.code == "transcript_no_conversation", f"{path}: {error}"
            refused.append(path.name)
            continue
        assert report.equal, f"{path}: {report.summary}"
        equal += 1
    with capsys.disabled():
        where = f"{equal} of {len(found)} became Cassettes that replay equal" if found else "absent on this machine"
        print(f"\nshared transcripts: {where}; without any conversation: {', '.join(refused) or 'none'}")
