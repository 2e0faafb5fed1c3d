"""The line layer of every transcript format (transcript-formats §2).

A file is read as a stream of lines with a bounded length; nothing reads it whole. A line that cannot be read is
reported with its number and skipped, everything after it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import msgspec

from cassettes.transcripts.script import LineProblem, Report

JsonObject = dict[str, Any]

MAX_LINE_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_BLOCK = 1024 * 1024


class Record(msgspec.Struct, frozen=True):
    """One object of the file and the line it stands on."""

    line: int
    value: JsonObject


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def read_records(path: Path, report: Report, *, limit: int = MAX_LINE_BYTES) -> Iterator[Record]:
    """Every JSON object of the file in order; what is not one goes into the report."""
    with path.open("rb") as stream:
        for number, raw, whole in _lines(stream, limit):
            if raw is None:
                report.problem(LineProblem(file=path.name, line=number, kind="line_too_long", detail=f"over {limit}"))
                continue
            yield from _objects(path.name, number, raw, whole, report)


def _lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes | None, bool]]:
    """Number, bytes (None: over the limit, skipped) and whether the line has its newline."""
    number = 0
    while True:
        raw = stream.readline(limit + 1)
        if not raw:
            return
        number += 1
        if len(raw) > limit and not raw.endswith(b"\n"):
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(_BLOCK)
            yield number, None, True
            continue
        if number == 1 and raw.startswith(_BOM):
            raw = raw[len(_BOM) :]
        yield number, raw, raw.endswith(b"\n")


def _objects(name: str, number: int, raw: bytes, whole: bool, report: Report) -> Iterator[Record]:
    def problem(kind: str, detail: str = "") -> None:
        report.problem(LineProblem(file=name, line=number, kind=kind, detail=detail[:200]))

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problem("invalid_utf8", str(error))
        text = raw.decode("utf-8", errors="replace")
    text = text.strip(" \t\r\n\x00")
    found = 0
    at = 0
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            problem("too_deep")
            return
        except ValueError as error:
            problem("bad_json" if whole else "cut_line", str(error))
            return
        if isinstance(value, dict):
            found += 1
            if found == 2:
                problem("several_records", "records of two writers on one line; all are kept")
            report.records += 1
            yield Record(number, value)
        else:
            problem("not_an_object", type(value).__name__)
        at = end
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
