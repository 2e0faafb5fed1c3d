"""The line layer (transcript-formats §2, cases 1-5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.core.errors import InputRejected
from cassettes.transcripts.lines import read_records
from cassettes.transcripts.reading import read_transcript
from cassettes.transcripts.script import Report
from tests.transcripts.making import ClaudeFile


def read(path: Path, **options: int) -> tuple[list[dict[str, object]], Report]:
    report = Report()
    return [record.value for record in read_records(path, report, **options)], report


@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_a_file_without_content_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputRejected) as refused:
        read_transcript(path)
    assert refused.value.code == "transcript_empty"


def test_byte_order_mark_crlf_and_a_cut_last_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\r\n{"b":2}\r\n{"c":')
    records, report = read(path)
    assert records == [{"a": 1}, {"b": 2}]
    assert [(problem.line, problem.kind) for problem in report.problems] == [(4, "cut_line")]


def test_the_last_line_needs_no_newline(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":2}')
    records, report = read(path)
    assert records == [{"a": 1}, {"b": 2}]
    assert not report.problems


def test_two_records_on_one_line_are_both_kept_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}{"b":2} {"c":3}\n{"d":4}\n')
    records, report = read(path)
    assert records == [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]
    assert [(problem.line, problem.kind) for problem in report.problems] == [(1, "several_records")]


def test_everything_after_a_bad_line_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n{"torn": "by ano\nWARN log line\n[1,2]\n{"x":NaN}\n{"b":2}\n')
    records, report = read(path)
    assert records == [{"a": 1}, {"b": 2}]
    assert [(problem.line, problem.kind) for problem in report.problems] == [
        (2, "bad_json"),
        (3, "bad_json"),
        (4, "not_an_object"),
        (5, "bad_json"),
    ]


def test_a_line_over_the_limit_is_skipped_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n{"big":"' + b"x" * 20_000_000 + b'"}\n{"b":2}\n')
    records, report = read(path, limit=16 * 1024 * 1024)
    assert records == [{"a": 1}, {"b": 2}]
    assert [(problem.line, problem.kind) for problem in report.problems] == [(2, "line_too_long")]


def test_a_line_as_long_as_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = b'{"a":"xxxx"}'
    path.write_bytes(line + b"\n" + line[:-2] + b'x"}\n')
    records, report = read(path, limit=len(line))
    assert records == [{"a": "xxxx"}]
    assert [problem.line for problem in report.problems] == [2]


def test_nesting_that_no_reader_takes_is_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b'}\n{"b":2}\n')
    records, report = read(path)
    assert records[-1] == {"b": 2}
    assert {problem.kind for problem in report.problems} <= {"too_deep", "bad_json"}


def test_broken_utf8_is_reported_and_the_record_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":"\xff"}\n')
    records, report = read(path)
    assert records == [{"a": "\ufffd"}]
    assert [problem.kind for problem in report.problems] == ["invalid_utf8"]


def test_odd_characters_and_names_come_through_exactly(tmp_path: Path) -> None:
    odd = {"__proto__": "a\x00b", "constructor": "\x1b[31m", "x": "\ud83d", "y": "\u202eabc", "z": "<script>"}
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(odd).encode() + b"\n")
    records, report = read(path)
    assert records == [odd]
    assert not report.problems


@given(st.lists(st.binary(max_size=60).filter(lambda line: b"\n" not in line), max_size=12))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_bytes(b"\n".join([*lines, b'{"whole":true}']))
    records, report = read(path)
    assert {"whole": True} in records
    assert all(1 <= problem.line <= len(lines) + 1 for problem in report.problems)


@given(st.binary(max_size=400))
def test_no_file_breaks_the_import(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputRejected):
        read_transcript(path)


def test_a_session_with_torn_lines_keeps_its_turns(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("first")
    file.reply("one")
    file.raw(b'{"type":"assistant","uuid":"half')
    file.user("second")
    file.reply("two")
    script = read_transcript(file.write(tmp_path / "s.jsonl"))
    assert [turn.text for turn in script.turns] == ["first", "second"]
    assert [(problem.file, problem.line) for problem in script.report.problems] == [("s.jsonl", 3)]
