"""What an admin sees and decides when an upload holds secrets."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from cassettes import catalog, intake, uploads
from cassettes.artifacts.cassette import CassetteFolder
from cassettes.artifacts.secrets import scan
from cassettes.models import Cassette, Upload
from tests.samples import CODEX, PROVIDERS
from tests.server import wait_until
from tests.site.conftest import signed_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("workers")]

SECRET = "AKIA" + "Q7ZLMN4TRPX2WVCB"


@pytest.fixture
def boss(transactional_db: None) -> Client:
    """An admin."""
    return signed_in("ada", is_staff=True)


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """A transcript with a secret in its prompt and its output."""
    text = (PROVIDERS / f"{CODEX}.jsonl").read_text()
    text = text.replace("The tests fail.", f"The tests fail with {SECRET}.").replace("-1 != 5", f"{SECRET} != 5")
    path = tmp_path / "leaky.jsonl"
    path.write_text(text)
    return path


def uploaded(client: Client, path: Path) -> dict[str, Any]:
    """What became of an upload."""
    answer = client.post("/api/uploads", {"file": SimpleUploadedFile(path.name, path.read_bytes())})
    assert answer.status_code == 202
    where = f"/api/uploads/{answer.json()['id']}"
    assert wait_until(lambda: client.get(where).json()["state"] not in ("queued", "running"))
    job: dict[str, Any] = client.get(where).json()
    return job


def test_an_upload_with_secrets_is_held_and_shown_masked(boss: Client, leaky: Path) -> None:
    job = uploaded(boss, leaky)
    assert job["state"] == "held"
    assert not Cassette.objects.exists()
    assert list(catalog.store().ids()) == []
    assert SECRET not in json.dumps(job)
    page = boss.get(f"/uploads/{job['id']}/").content.decode()
    for shown in (
        "AWS Access Key",
        "AKIA… (20 characters)",
        "activity-events.jsonl, line 1",
        "Publish a redacted copy",
    ):
        assert shown in page
    assert SECRET not in page


def test_a_redacted_copy_is_published_in_its_place(boss: Client, leaky: Path) -> None:
    job = uploaded(boss, leaky)
    answer = boss.post(f"/uploads/{job['id']}/decision/", {"decision": "redact"}, follow=True)
    assert answer.status_code == 200
    row = Cassette.objects.get()
    held_id = job["result"]["cassettes"][0]["cassetteId"]
    assert (row.redacted_from, row.pk != held_id) == (held_id, True)
    assert row.name.endswith("(redacted)")
    assert scan(CassetteFolder(catalog.artifact_path(row.pk))) == []
    assert not intake.aside(job["id"]).exists()
    assert "redacted" in boss.get("/").content.decode()
    assert "redacted copy" in boss.get(f"/cassettes/{row.pk}/").content.decode()
    Cassette.objects.all().delete()
    catalog.rebuild()
    assert Cassette.objects.get().redacted_from == held_id


def test_it_may_be_published_as_it_is(boss: Client, leaky: Path) -> None:
    job = uploaded(boss, leaky)
    answer = boss.post(
        f"/api/uploads/{job['id']}/decision", {"decision": "publish"}, content_type="application/json"
    ).json()
    assert answer["state"] == "done"
    assert Cassette.objects.get().pk == job["result"]["cassettes"][0]["cassetteId"]
    assert len(scan(CassetteFolder(catalog.artifact_path(Cassette.objects.get().pk)))) == 1


def test_it_may_be_discarded_and_decided_only_once(boss: Client, leaky: Path) -> None:
    job = uploaded(boss, leaky)
    assert boss.post(f"/uploads/{job['id']}/decision/", {"decision": "discard"}).status_code == 302
    assert not Cassette.objects.exists()
    assert not intake.aside(job["id"]).exists()
    again = boss.post(f"/api/uploads/{job['id']}/decision", {"decision": "publish"}, content_type="application/json")
    assert (again.status_code, again.json()["code"]) == (409, "upload_not_held")


@pytest.mark.parametrize("decision", ["", "burn", "PUBLISH"])
def test_what_is_no_decision_changes_nothing(decision: str, boss: Client, leaky: Path) -> None:
    job = uploaded(boss, leaky)
    answer = boss.post(f"/api/uploads/{job['id']}/decision", {"decision": decision}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "decision_invalid")
    assert uploads.get(job["id"]).state == Upload.State.HELD


def test_a_member_neither_sees_nor_decides(boss: Client, leaky: Path) -> None:
    job = uploaded(boss, leaky)
    member = signed_in("mel")
    assert member.get(f"/uploads/{job['id']}/").status_code == 403
    assert member.post(f"/uploads/{job['id']}/decision/", {"decision": "publish"}).status_code == 403
    assert not Cassette.objects.exists()


def test_what_is_held_survives_a_restart_and_what_is_not_is_swept(
    boss: Client, leaky: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = uploaded(boss, leaky)
    stray = intake.aside("stray")
    stray.mkdir(parents=True)
    later = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(uploads, "_STARTED", later)
    uploads.sweep()
    assert intake.aside(job["id"]).exists()
    assert not stray.exists()


def test_an_upload_without_secrets_is_published_at_once(boss: Client) -> None:
    job = uploaded(boss, PROVIDERS / f"{CODEX}.jsonl")
    assert job["state"] == "done"
    assert Cassette.objects.count() == 1


def imported(leaky: Path, policy: str) -> dict[str, Any]:
    """What the command tells."""
    out = StringIO()
    try:
        call_command("import_transcript", str(leaky), "--json", "--secrets", policy, stdout=out)
    except CommandError as error:
        assert error.returncode == 1
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def test_the_command_publishes_with_a_warning_redacts_or_refuses(leaky: Path) -> None:
    refused = imported(leaky, "refuse")
    assert refused["error"]["code"] == "secrets_found"
    assert list(catalog.store().ids()) == []
    redacted = imported(leaky, "redact")
    assert redacted["replay"] == "equal"
    assert catalog.get(redacted["cassetteId"]).redacted_from
    published = imported(leaky, "publish")
    assert published["secrets"][0]["masked"].startswith("AKIA")
    assert Cassette.objects.count() == 2
