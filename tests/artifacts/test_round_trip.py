"""Whatever a Cassette holds: out into an archive and in again is the same, and so is the archive every time."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassettes.artifacts.archives import FORMATS, export_archive, import_archive, import_folder
from cassettes.artifacts.audit import verify_static
from cassettes.artifacts.store import ArtifactStore
from cassettes.core.errors import InputRejected
from cassettes.core.tape import Frame, encode_frame_line
from tests.making import edit, reseal
from tests.samples import CASSETTES

JsonObject = dict[str, Any]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = TEXTS.map(str.strip).filter(lambda text: 1 <= len(text) <= 120)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), TEXTS
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(TEXTS.map(lambda t: f"x{t}"), inner, max_size=3)
    ),
    max_leaves=8,
)
BLOBS = st.lists(st.binary(max_size=200), max_size=3, unique=True)


def built(folder: Path, name: str, values: list[JsonObject], text: str, blobs: list[bytes], cuts: list[int]) -> Path:
    """A valid Cassette with this content; messages are cut into frames anywhere."""
    cassette = Path(shutil.copytree(CASSETTES / "example", folder / "built"))
    edit(cassette, "cassette.json", lambda manifest: manifest.update(name=name))

    def say(state: JsonObject) -> None:
        state["agent"]["sessions"][0]["messages"][1]["payload"]["text"] = text

    edit(cassette, "expected-state.json", say)
    data = b"".join(json.dumps({"method": "x", "params": value}).encode() + b"\n" for value in values)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    with (cassette / "provider" / "frames.jsonl").open("ab") as frames:
        for number, (start, end) in enumerate(pairwise(edges), 10):
            frames.write(
                encode_frame_line(Frame("connection-1", number, number, 300, "stdout", data[start:end], None, "", 0))
            )
    (cassette / "blobs" / "sha256").mkdir()
    for number, blob in enumerate(blobs):
        _add_blob(cassette, number, blob)
    reseal(cassette)
    return cassette


def _add_blob(cassette: Path, number: int, blob: bytes) -> None:
    digest = hashlib.sha256(blob).hexdigest()
    (cassette / "blobs" / "sha256" / digest).write_bytes(blob)
    entry = {
        "kind": "agent-prompt-attachment",
        "sha256": digest,
        "sizeBytes": len(blob),
        "agentSessionId": "0d6f0c5e-7a51-4b8e-9a43-2f1f6d1c0a01",
        "attachmentId": f"attachment-{number}",
        "mimeType": "image/png",
    }
    edit(cassette, "blobs/manifest.json", lambda manifest: manifest["blobs"].append(entry))
    listed = {"path": f"blobs/sha256/{digest}", "role": "referenced-blob", "sizeBytes": 0, "sha256": "0" * 64}
    edit(cassette, "cassette.json", lambda manifest: manifest["files"].append(listed))


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a Cassette."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=60, deadline=None)
@given(
    name=NAMES,
    values=st.lists(st.dictionaries(TEXTS.map(lambda t: f"x{t}"), VALUES, max_size=3), max_size=5),
    text=TEXTS,
    blobs=BLOBS,
    cuts=st.lists(st.integers(0, 5000), max_size=6),
)
def test_what_goes_out_comes_in_again(
    name: str, values: list[JsonObject], text: str, blobs: list[bytes], cuts: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cassette = built(Path(folder), name, values, text, blobs, cuts)
        verify_static(cassette)
        first = ArtifactStore(Path(folder) / "first")
        made = import_folder(cassette, first)
        assert content(made.path) == content(cassette)
        for archive_format in FORMATS:
            archive = exported(first, made.cassette_id, archive_format)
            second = ArtifactStore(Path(folder) / f"second{archive_format}")
            again = import_archive(io.BytesIO(archive), second)
            assert content(again.path) == content(cassette)
            assert exported(second, again.cassette_id, archive_format) == archive


def exported(store: ArtifactStore, cassette_id: str, archive_format: str) -> bytes:
    """An archive in memory."""
    out = io.BytesIO()
    export_archive(store, cassette_id, archive_format, out)
    return out.getvalue()


def test_another_format_is_refused(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    made = import_folder(CASSETTES / "example", store)
    with pytest.raises(InputRejected) as refused:
        exported(store, made.cassette_id, ".rar")
    assert refused.value.code == "archive_format"
