"""Somebody brings a file: what becomes of it, and what is said when it is no good."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LONG_MS, wait_for_end
from tests.samples import CASSETTES, PROVIDERS
from tests.server import Server, wait_until


def test_a_transcript_is_uploaded_and_watched(page: Page, own_site: Server) -> None:
    page.goto(own_site.url + "/")
    page.locator("input[type=file]").set_input_files(str(PROVIDERS / "codex-rollout-control.jsonl"))
    upload = page.locator(".upload")
    expect(upload).to_contain_text("Replay equal", timeout=LONG_MS)
    expect(page.locator("#cassettes")).to_contain_text("Hello")  # the list is up to date without a reload
    upload.get_by_role("link", name="Open the Cassette").click()
    wait_for_end(page)


def test_an_archive_is_uploaded_and_downloaded_again(page: Page, own_site: Server, tmp_path: Path) -> None:
    page.goto(own_site.url + "/")
    page.get_by_role("link", name="Codex: a small coding task").click()
    page.get_by_text("Share").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download .zip").click()
    archive = tmp_path / "cassette.zip"
    download.value.save_as(archive)
    page.goto(own_site.url + "/")
    page.locator("input[type=file]").set_input_files(str(archive))
    expect(page.locator(".upload")).to_contain_text("was here already", timeout=LONG_MS)


def _zip_with_a_way_out() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../evil.txt", "x")
    return out.getvalue()


def _truncated() -> bytes:
    return (CASSETTES / "small-create.tar.gz").read_bytes()[:2000]


def _version_six() -> bytes:
    out = io.BytesIO()
    with (
        tarfile.open(CASSETTES / "small-create.tar.gz") as source,
        tarfile.open(fileobj=out, mode="w:gz") as changed,
    ):
        for member in source.getmembers():
            data = source.extractfile(member).read() if member.isfile() else b""  # type: ignore[union-attr]
            if member.name.endswith("cassette.json"):
                data = json.dumps({**json.loads(data), "schemaVersion": 6}).encode()
                member.size = len(data)
            changed.addfile(member, io.BytesIO(data) if member.isfile() else None)
    return out.getvalue()


BAD = [
    ("notes.txt", lambda: b"some notes\nof a person\n", "transcript_", "session file"),
    ("empty.jsonl", lambda: b"", "upload_empty", "empty"),
    ("out.zip", _zip_with_a_way_out, "archive_", "evil.txt"),
    ("cut.tar.gz", _truncated, "archive_", "archive"),
    ("old.tar.gz", _version_six, "", "version 6"),
]


@pytest.mark.parametrize(("name", "content", "code", "says"), BAD, ids=[one[0] for one in BAD])
def test_bad_input_gets_a_clear_message_everywhere_and_leaves_nothing(
    name: str, content: Callable[[], bytes], code: str, says: str, page: Page, site: Server, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content())
    before = _held(site)

    page.goto(site.url + "/")
    page.locator("input[type=file]").set_input_files(str(path))
    failed = page.locator(".upload.failed")
    expect(failed).to_contain_text(says, timeout=LONG_MS)
    expect(failed.locator("code")).to_contain_text(code)

    answer = page.request.post(
        f"{site.url}/api/uploads?filename={name}",
        data=path.read_bytes(),
        headers={"X-CSRFToken": page.locator("meta[name=csrf-token]").get_attribute("content") or ""},
    )
    body = answer.json()
    if answer.status == 202:
        job = f"{site.url}/api/uploads/{body['id']}"
        assert wait_until(lambda: page.request.get(job).json()["state"] == "failed")
        body = page.request.get(job).json()["error"]
    assert body["code"].startswith(code)
    assert says in json.dumps(body)

    command = "import_cassette" if name.endswith((".zip", ".gz")) else "import_transcript"
    told = site.manage(command, str(path))
    assert told.returncode == 1
    assert says in told.stdout
    assert "Traceback" not in told.stdout + told.stderr

    assert _held(site) == before


def _held(site: Server) -> list[str]:
    """Everything below the folders where an import could leave something."""
    folders = ("artifacts", "uploads", "workers")
    return sorted(str(path) for folder in folders for path in (site.home / folder).rglob("*") if path.is_file())
