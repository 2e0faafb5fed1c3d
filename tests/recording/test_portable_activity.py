"""Events lose this machine's folders and keep what the person wrote."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from cassettes.core.activity import ActivityEvent, check_portable
from cassettes.core.errors import RecordingError
from cassettes.core.portable_activity import portable_event


def _event(kind: str, payload: dict[str, Any]) -> ActivityEvent:
    return ActivityEvent(
        schema_version=7, sequence=1, kind="intent", type=kind, event_id="e", payload=payload, occurred_at_unix_ms=1
    )


def _projected(kind: str, payload: dict[str, Any], assets: Path | None = None) -> dict[str, Any]:
    event = portable_event(_event(kind, payload), assets)
    check_portable(event)
    assert event.payload is not None
    return event.payload


def test_the_working_folder_and_the_project_below_it_become_the_token() -> None:
    payload = _projected(
        "activation/requested",
        {
            "cwd": "/home/ada/app/",
            "railPlacement": {
                "kind": "project",
                "projectPath": "/home/ada/app",
                "sectionKey": "project:/home/ada/app/sub",
            },
            "railSectionKey": "conversations",
        },
    )
    assert payload["cwd"] == "${REPLAY_CWD}"
    assert payload["railPlacement"]["projectPath"] == "${REPLAY_CWD}"
    assert payload["railPlacement"]["sectionKey"] == "project:${REPLAY_CWD}/sub"
    assert payload["railSectionKey"] == "conversations"


def test_a_project_elsewhere_is_unchanged() -> None:
    event = portable_event(_event("session/activate", {"cwd": "/a/b", "railPlacement": {"projectPath": "/a/bc"}}), None)
    assert event.payload == {"cwd": "${REPLAY_CWD}", "railPlacement": {"projectPath": "/a/bc"}}


def test_a_linked_folder_counts_as_its_target(tmp_path: Path) -> None:
    (tmp_path / "app" / "part").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "app")
    payload = _projected(
        "activation/requested",
        {"cwd": str(tmp_path / "link"), "railPlacement": {"projectPath": str(tmp_path / "app" / "part")}},
    )
    assert payload["railPlacement"]["projectPath"] == "${REPLAY_CWD}/part"


def test_blank_folders_and_other_events_stay() -> None:
    assert _projected("activation/requested", {"cwd": " "}) == {"cwd": " "}
    assert _projected("submit/requested", {"cwd": "/x", "content": "see /x"}) == {"cwd": "/x", "content": "see /x"}


def test_an_image_moves_into_the_event(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(b"picture")
    block = {"type": "image", "path": str(tmp_path / "one.png"), "mimeType": "image/png"}
    payload = _projected("submit/requested", {"content": [{"type": "text", "text": "look"}, block]}, tmp_path)
    data = base64.b64encode(b"picture").decode()
    assert payload["content"][1] == {"type": "image", "mimeType": "image/png", "data": data}


@pytest.mark.parametrize("name", ["absent.png", "folder", "../outside.png"])
def test_an_image_that_is_no_file_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    assets = tmp_path / "assets"
    (assets / "folder").mkdir(parents=True)
    (tmp_path / "outside.png").write_bytes(b"secret")
    block = {"type": "image", "path": str(assets / name)}
    with pytest.raises(RecordingError) as caught:
        portable_event(_event("submit/requested", {"content": [block]}), assets)
    assert caught.value.code == "prompt_asset_invalid"
    assert "outside.png" not in str(caught.value)


def test_an_image_behind_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "outside.png").write_bytes(b"secret")
    (assets / "link.png").symlink_to(tmp_path / "outside.png")
    block = {"type": "image", "path": str(assets / "link.png")}
    with pytest.raises(RecordingError):
        portable_event(_event("submit/requested", {"content": [block]}), assets)
