"""The recorded data that tests stand on, and Cassettes made of it."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from cassettes.artifacts.store import ArtifactStore
from cassettes.transcripts.importing import import_transcript

JsonObject = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
PROVIDERS = ROOT / "tests" / "data" / "providers"
CASSETTES = ROOT / "tests" / "data" / "cassettes"
SHARED = ROOT.parent / "shared" / "data"  # read where it lies; a clone of the project alone has none

CLAUDE = "claude-transcript-coding"
CODEX = "codex-rollout-coding"


def transcripts() -> list[Path]:
    """Every transcript that was made for the project."""
    return sorted(PROVIDERS.rglob("*.jsonl"))


@cache
def _made(stem: str) -> Path:
    store = ArtifactStore(Path(mkdtemp(prefix="reprise-samples-")))
    return import_transcript(PROVIDERS / f"{stem}.jsonl", store).path


def cassette_copy(stem: str, folder: Path) -> Path:
    """A Cassette of a sample transcript, to be changed at will."""
    target = folder / stem
    shutil.copytree(_made(stem), target)
    return target


def frames(cassette: Path) -> list[JsonObject]:
    """The frames of the tape."""
    return [json.loads(line) for line in (cassette / "provider" / "frames.jsonl").read_text().splitlines()]


def write_frames(cassette: Path, changed: list[JsonObject]) -> None:
    """Write the tape anew. Hashes are left as they are: a replay does not rely on them."""
    text = "".join(json.dumps(frame, separators=(",", ":")) + "\n" for frame in changed)
    (cassette / "provider" / "frames.jsonl").write_text(text)


def change_data(frame: JsonObject, change: Callable[[bytes], bytes]) -> None:
    """Change the bytes that a frame carries."""
    frame["data"] = base64.b64encode(change(base64.b64decode(frame["data"]))).decode()
