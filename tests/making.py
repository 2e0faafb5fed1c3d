"""Changing Cassettes and making big ones: whatever changes, sizes and hashes are right again afterwards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cassettes.core.jsontext import compact, indented
from cassettes.core.tape import Frame, TapeStatistics, decode_frame_line, encode_frame_line, encode_manifest
from cassettes.core.tape import decode_manifest as decode_tape_manifest

JsonObject = dict[str, Any]


def read(cassette: Path, name: str) -> Any:
    """A JSON file of a Cassette."""
    return json.loads((cassette / name).read_bytes())


def edit(cassette: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change a JSON file; `change` may return another value."""
    value = read(cassette, name)
    changed = change(value)
    text = indented(value if changed is None else changed)
    (cassette / name).write_text(text)


def lines(cassette: Path, name: str) -> list[JsonObject]:
    """A JSONL file of a Cassette."""
    return [json.loads(line) for line in (cassette / name).read_bytes().splitlines()]


def write_lines(cassette: Path, name: str, values: list[Any]) -> None:
    """Write a JSONL file."""
    (cassette / name).write_text("".join(compact(value) + "\n" for value in values))


def reseal(cassette: Path, *, tape: bool = True) -> None:
    """Sizes, hashes and counts again right after a change; with `tape` those of the tape manifest too."""
    if tape:
        _reseal_tape(cassette)
    manifest = read(cassette, "cassette.json")
    for file in manifest["files"]:
        path = cassette / file["path"]
        if path.is_file():
            file["sizeBytes"] = path.stat().st_size
            file["sha256"] = _digest(path)
    manifest["totalBytes"] = sum(file["sizeBytes"] for file in manifest["files"])
    (cassette / "cassette.json").write_text(indented(manifest))


def _reseal_tape(cassette: Path) -> None:
    path = cassette / "provider" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    frames = cassette / "provider" / "frames.jsonl"
    manifest["framesSha256"] = _digest(frames)
    manifest["frameCount"] = sum(1 for _ in frames.open("rb"))
    path.write_text(indented(manifest))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def grow(cassette: Path, size: int, payload: Callable[[int], bytes]) -> None:
    """Let the tape of a Codex Cassette grow to `size` bytes with frames that carry `payload(number)`."""
    path = cassette / "provider" / "frames.jsonl"
    taken = list(_frames(path))
    last = next(frame for frame in reversed(taken) if frame.connection_id == taken[0].connection_id)
    statistics = TapeStatistics()
    for frame in taken:
        statistics.add(frame, frame.size)
    number, chunk = len(taken), last.chunk_seq
    with path.open("ab") as file:
        while statistics.stored_bytes < size:
            number, chunk = number + 1, chunk + 1
            frame = Frame(
                last.connection_id, chunk, number, last.elapsed_ms + number, "stdout", payload(number), None, "", 0
            )
            line = encode_frame_line(frame)
            statistics.add(frame, len(line))
            file.write(line)
    tape = cassette / "provider" / "manifest.json"
    manifest = decode_tape_manifest(tape.read_bytes())
    statistics.into(manifest)
    tape.write_bytes(encode_manifest(manifest))
    reseal(cassette)


def _frames(path: Path) -> Iterator[Frame]:
    for number, line in enumerate(path.open("rb"), 1):
        yield decode_frame_line(line, number)
