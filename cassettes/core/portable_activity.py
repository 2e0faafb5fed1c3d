"""Activity events freed of this machine, before their bytes are written (cassette-v7 §7.5).

Only structural members are looked at: what a person wrote is never searched or changed.
"""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Any

import msgspec

from cassettes.core.activity import CWD_TOKEN, STARTS_SESSION, ActivityEvent
from cassettes.core.errors import Place, RecordingError
from cassettes.core.records import present

MAX_IMAGE_BYTES = 20 * 1024 * 1024
_CONTENT = ("content", "runtimeContent", "initialContent")
_PROJECT = "project:"
JsonObject = dict[str, Any]


def portable_event(event: ActivityEvent, prompt_assets: Path | None = None) -> ActivityEvent:
    """The event as it is written.

    `prompt_assets` is the folder that holds images attached to prompts; their bytes move into the event. Raises
    `RecordingError` (`prompt_asset_invalid`) for an image that is elsewhere, missing, no regular file or too large.
    """
    if not event.payload:
        return event
    payload = dict(event.payload)
    for name in _CONTENT:
        if isinstance(payload.get(name), list):
            payload[name] = [_portable_block(block, prompt_assets) for block in payload[name]]
    if event.type.strip() in STARTS_SESSION:
        _project_folder(payload)
    return msgspec.structs.replace(event, payload=payload)


def _portable_block(block: object, prompt_assets: Path | None) -> object:
    if not isinstance(block, dict) or block.get("type") != "image":
        return block
    path = block.get("path")
    if not isinstance(path, str) or not present(path):
        return block
    data = base64.b64encode(_image_bytes(path, prompt_assets)).decode("ascii")
    return {**{name: value for name, value in block.items() if name != "path"}, "data": data}


def _image_bytes(path: str, prompt_assets: Path | None) -> bytes:
    def refused(why: str) -> RecordingError:
        return RecordingError(
            f"An image of a prompt {why}.",
            code="prompt_asset_invalid",
            place=Place(path="$.payload.content"),
            hint="Attach the image again.",
        )

    if prompt_assets is None:
        raise refused("is a file, but there is no folder of prompt images")
    try:
        folder = prompt_assets.resolve(strict=True)
        file = Path(path).resolve(strict=True)
        if not file.is_relative_to(folder) or file == folder:
            raise refused("is not in the folder of prompt images")
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            # Look at the opened file, not at its name: the name may point elsewhere by now.
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise refused("is not a regular file")
            data = stream.read(MAX_IMAGE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise refused("cannot be read") from error
    if len(data) > MAX_IMAGE_BYTES:
        raise refused(f"is larger than {MAX_IMAGE_BYTES} bytes")
    return data


def _project_folder(payload: JsonObject) -> None:
    """Replace the working folder, and the project's folder where it is below, by the token of replay."""
    cwd = payload.get("cwd")
    if not isinstance(cwd, str) or not present(cwd):
        return
    payload["cwd"] = CWD_TOKEN
    rail = payload.get("railPlacement")
    if isinstance(rail, dict):
        placed = dict(rail)
        if isinstance(placed.get("projectPath"), str):
            placed["projectPath"] = portable_folder(placed["projectPath"], cwd)
        if isinstance(placed.get("sectionKey"), str):
            placed["sectionKey"] = _portable_key(placed["sectionKey"], cwd)
        payload["railPlacement"] = placed
    if isinstance(payload.get("railSectionKey"), str):
        payload["railSectionKey"] = _portable_key(payload["railSectionKey"], cwd)


def _portable_key(key: str, cwd: str) -> str:
    return _PROJECT + portable_folder(key[len(_PROJECT) :], cwd) if key.startswith(_PROJECT) else key


def portable_folder(path: str, cwd: str) -> str:
    """`path` relative to the token when it is `cwd` or below it; otherwise unchanged."""
    if not present(path):
        return path
    below = _normal(path)
    base = _normal(cwd)
    if below == base:
        return CWD_TOKEN
    prefix = base.rstrip("/") + "/"
    return f"{CWD_TOKEN}/{below[len(prefix) :]}" if below.startswith(prefix) else path


def _normal(path: str) -> str:
    """Symlinks resolved where the path exists; else only `.`, `..` and double slashes."""
    trimmed = path.strip()
    try:
        return str(Path(trimmed).resolve(strict=True)).replace("\\", "/")
    except (OSError, RuntimeError, ValueError):
        return os.path.normpath(trimmed).replace("\\", "/")
