"""The catalog: rows that can be lost, found by name, in every order, and made again."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from cassettes import catalog
from cassettes.artifacts.cassette import FILES
from cassettes.models import Cassette, ReviewLink

Two = tuple[Cassette, Cassette]


def rows() -> list[dict[str, object]]:
    """Every row, as it is."""
    return list(Cassette.objects.order_by("id").values())


# ------------------------------------------------------------------------------------------------- rebuilding
def test_an_empty_database_gets_every_row_back(two_cassettes: Two) -> None:
    before = rows()
    Cassette.objects.all().delete()
    out = StringIO()
    call_command("rebuild_catalog", stdout=out)
    assert rows() == before
    assert out.getvalue() == "2 Cassettes, 0 rows without an artifact removed\n"


def test_rebuilding_keeps_the_review_links_of_what_is_there(two_cassettes: Two) -> None:
    catalog.create_link(two_cassettes[0].pk)
    catalog.rebuild()
    assert ReviewLink.objects.get().is_open


def test_a_row_without_an_artifact_goes(two_cassettes: Two) -> None:
    shutil.rmtree(catalog.home() / "cassettes" / two_cassettes[0].pk)
    result = catalog.rebuild()
    assert result.removed == [two_cassettes[0].pk]
    assert list(Cassette.objects.values_list("pk", flat=True)) == [two_cassettes[1].pk]


def test_a_broken_artifact_is_named_and_does_not_stop_the_others(two_cassettes: Two) -> None:
    broken, whole = two_cassettes
    (catalog.home() / "cassettes" / broken.pk / FILES.cassette_manifest.path).write_text("{")
    errors = StringIO()
    with pytest.raises(CommandError, match="1 artifacts could not be read"):
        call_command("rebuild_catalog", stdout=StringIO(), stderr=errors)
    assert broken.pk in errors.getvalue()
    assert list(Cassette.objects.values_list("pk", flat=True)) == [whole.pk]


def test_a_new_name_survives_a_rebuild(admin: Client, two_cassettes: Two) -> None:
    row = two_cassettes[0]
    renamed = admin.patch(f"/api/cassettes/{row.pk}", {"name": "Another name"}, content_type="application/json")
    assert renamed.json()["name"] == "Another name"
    before = rows()
    Cassette.objects.all().delete()
    catalog.rebuild()
    assert rows() == before
    assert catalog.get(row.pk).manifest_sha256 != row.manifest_sha256


@pytest.mark.parametrize("name", ["", "   ", "x" * 121])
def test_a_name_that_no_cassette_may_have_changes_nothing(name: str, admin: Client, two_cassettes: Two) -> None:
    row = two_cassettes[0]
    answer = admin.patch(f"/api/cassettes/{row.pk}", {"name": name}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_name")
    assert catalog.get(row.pk).name == row.name


# ------------------------------------------------------------------------------------------------- finding
def test_the_list_shows_what_the_artifact_says(member: Client, two_cassettes: Two) -> None:
    page = member.get("/").content.decode()
    for row in two_cassettes:
        for shown in (row.name, row.provider_name, row.duration, f"{row.turns}", f"{row.tool_calls}"):
            assert shown in page


@pytest.mark.parametrize(
    ("query", "found"),
    [("", 2), ("codex", 1), ("CODEX", 1), ("no such words", 0), ("\0", 2), ("% _", 0), ("<script>", 0)],
)
def test_a_search_finds_by_words_of_the_name(query: str, found: int, member: Client, two_cassettes: Two) -> None:
    Cassette.objects.update(session_title="")
    page = member.get("/", {"q": query})
    assert page.status_code == 200
    assert page.context["page"].paginator.count == found
    assert b"<script>" not in page.content.replace(b"<script type", b"").replace(b"<script src", b"")


@pytest.mark.parametrize("sort", catalog.SORTS)
def test_the_list_is_sorted_both_ways_by_every_column(sort: str, two_cassettes: Two) -> None:
    up = [getattr(row, sort) for row in catalog.search(sort=sort)]
    down = [getattr(row, sort) for row in catalog.search(sort=f"-{sort}")]
    assert up == sorted(up)
    assert down == sorted(down, reverse=True)


@pytest.mark.parametrize("page", ["2", "0", "-1", "x", "99999999999999999999"])
def test_a_page_that_is_not_there_shows_the_nearest(page: str, member: Client, two_cassettes: Two) -> None:
    assert member.get("/", {"page": page, "sort": "nonsense"}).status_code == 200


def test_an_empty_catalog_says_what_to_do(admin: Client) -> None:
    assert b"Upload" in admin.get("/").content


# ------------------------------------------------------------------------------------------------- verifying
def told(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and the objects of `verify --json`."""
    out = StringIO()
    status = 0
    try:
        call_command("verify", *arguments, "--json", stdout=out)
    except CommandError as error:
        status = error.returncode
    return status, [json.loads(line) for line in out.getvalue().splitlines()]


def test_verify_takes_a_folder_an_archive_and_an_id(two_cassettes: Two, tmp_path: Path, workers: None) -> None:
    row = two_cassettes[0]
    archive = tmp_path / "cassette.zip"
    with archive.open("wb") as file:
        catalog.export(row.pk, ".zip", file)
    sources = [str(catalog.artifact_path(row.pk)), str(archive), row.pk]
    status, outcomes = told(*sources)
    assert status == 0
    assert outcomes == [
        {"source": source, "verdict": "accept", "code": "", "place": "", "replay": "equal"} for source in sources
    ]


def test_verify_static_does_not_replay(two_cassettes: Two, workers: None) -> None:
    status, outcomes = told(two_cassettes[1].pk, "--static")
    assert (status, outcomes[0]["replay"]) == (0, "not replayed")


def test_verify_rejects_with_code_and_place_and_goes_on(two_cassettes: Two, tmp_path: Path, workers: None) -> None:
    broken = catalog.artifact_path(two_cassettes[0].pk) / FILES.expected_state.path
    broken.write_bytes(broken.read_bytes() + b" ")
    empty = tmp_path / "empty.zip"
    empty.write_bytes(b"")
    status, outcomes = told(two_cassettes[0].pk, str(empty), two_cassettes[1].pk)
    assert status == 1
    assert [one["verdict"] for one in outcomes] == ["reject", "reject", "accept"]
    assert outcomes[0]["place"] == "expected-state.json"
    assert outcomes[1]["code"] == "archive_empty"


def test_verify_tells_by_its_status_that_something_is_not_there(two_cassettes: Two, workers: None) -> None:
    status, outcomes = told("no-such-thing", two_cassettes[0].pk)
    assert status == 2
    assert [one["code"] for one in outcomes] == ["cassette_unknown", ""]


def test_verify_writes_a_junit_report(two_cassettes: Two, tmp_path: Path, workers: None) -> None:
    (catalog.artifact_path(two_cassettes[0].pk) / FILES.expected_state.path).write_bytes(b"{}")
    report = tmp_path / "report.xml"
    told(*(row.pk for row in two_cassettes), "not \x01 there", "--junit", str(report))
    suite = ElementTree.parse(report).getroot()
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    cases = suite.findall("testcase")
    assert [[problem.tag for problem in case] for case in cases] == [["failure"], [], ["error"]]
    assert cases[0][0].get("type") == "disk_file_mismatch"


def test_a_report_that_cannot_be_written_is_told(two_cassettes: Two, tmp_path: Path, workers: None) -> None:
    status, _ = told(two_cassettes[0].pk, "--static", "--junit", str(tmp_path / "no" / "folder.xml"))
    assert status == 2


def test_verify_tells_where_the_bytes_are(two_cassettes: Two, workers: None) -> None:
    row = two_cassettes[0]
    _, outcomes = told(row.pk, "--static", "--size")
    size = outcomes[0]["size"]
    assert size["totalBytes"] == row.size_bytes
    out = StringIO()
    call_command("verify", row.pk, "--static", "--size", stdout=out)
    for shown in ("provider/frames.jsonl", "→ turn/start", "Largest frames", "1 Cassette: 1 accepted, 0 rejected"):
        assert shown in out.getvalue()


def test_the_size_page_and_the_api_tell_it_too(member: Client, two_cassettes: Two, workers: None) -> None:
    row = two_cassettes[0]
    page = member.get(f"/cassettes/{row.pk}/size/")
    assert page.status_code == 200
    assert "→ turn/start" in page.content.decode()
    assert member.get(f"/api/cassettes/{row.pk}/size").json()["totalBytes"] == row.size_bytes
    assert member.get("/cassettes/nothing/size/").status_code == 404
