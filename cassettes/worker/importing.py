"""The import job: a transcript or an archive goes in, verified Cassettes come out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cassettes.artifacts.archives import import_archive, is_archive
from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.secrets import scan
from cassettes.artifacts.store import ArtifactStore
from cassettes.playback.headless import replay
from cassettes.transcripts.importing import count_entities, import_transcript
from cassettes.transcripts.script import Report

JsonObject = dict[str, Any]
Say = Callable[[JsonObject], None]

_SHOWN_PROBLEMS = 50


def import_source(request: JsonObject, folder: Path, say: Say) -> JsonObject:
    """Import the file `request["source"]` into the artifacts at `request["home"]`, and replay what came out.

    Works in `folder`. Raises what makes the import impossible; then nothing was published.
    """
    source, store = Path(request["source"]), ArtifactStore(Path(request["home"]))
    name = str(request.get("name") or "")
    if is_archive(source):
        return _import_archive(source, store, name, folder, say)
    return _import_transcript(source, store, name, folder, say)


def _import_archive(source: Path, store: ArtifactStore, name: str, folder: Path, say: Say) -> JsonObject:
    say({"kind": "progress", "done": 1, "total": 4, "message": "Unpacking and auditing the Cassette"})
    imported = import_archive(source, store)
    if name and not imported.already_present:
        store.rename(imported.cassette_id, name)
    say({"kind": "progress", "done": 3, "total": 4, "message": "Replaying the Cassette"})
    made = {
        "cassetteId": imported.cassette_id,
        "records": imported.report.event_count + imported.report.frame_count,
        "entities": count_entities(CassetteFolder(imported.path).expected_state()),
        "unrecognised": 0,
        "created": not imported.already_present,
        **_replayed(imported.path, folder),
        **_secrets(imported.path, say),
    }
    return {"cassettes": [made], "report": {"format": "cassette", "notes": imported.report.notes}}


def _import_transcript(source: Path, store: ArtifactStore, name: str, folder: Path, say: Say) -> JsonObject:
    say({"kind": "progress", "done": 1, "total": 100, "message": "Reading the transcript"})

    def on_turn(done: int, total: int) -> None:
        message = f"Recording Turn {done + 1} of {total}"
        say({"kind": "progress", "done": 5 + 75 * done / max(1, total), "total": 100, "message": message})

    imported = import_transcript(source, store, name=name, scratch=folder, on_turn=on_turn)
    say({"kind": "progress", "done": 85, "total": 100, "message": "Replaying the Cassette"})
    made = {
        "cassetteId": imported.cassette_id,
        "records": imported.records,
        "entities": imported.entities,
        "unrecognised": sum(imported.report.unknown.values()) + imported.report.problem_count,
        "created": imported.created,
        **_replayed(imported.path, folder),
        **_secrets(imported.path, say),
    }
    return {"cassettes": [made], "report": report_of(imported.report)}


def report_of(report: Report) -> JsonObject:
    """The import report as people and programs get it; the first problems stand in it, all are counted."""
    body: JsonObject = msgspec.to_builtins(report)
    body["problems"] = body["problems"][:_SHOWN_PROBLEMS]
    return body


def _replayed(path: Path, folder: Path) -> JsonObject:
    report = replay(path, scratch=folder)
    return {"replay": report.summary, "replayError": report.error}


def _secrets(path: Path, say: Say) -> JsonObject:
    say({"kind": "progress", "done": 95, "total": 100, "message": "Looking for secrets"})
    return {"secrets": [finding.as_dict() for finding in scan(CassetteFolder(path))]}
