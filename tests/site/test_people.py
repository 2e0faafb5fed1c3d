"""Who may do what: a stranger nothing, a member watches, an admin does everything, a link opens one Cassette."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from cassettes import catalog
from cassettes.core.errors import InputRejected
from cassettes.models import Cassette, ReviewLink, Upload
from tests.site.conftest import PASSWORD

Two = tuple[Cassette, Cassette]


def pages(row: Cassette) -> list[str]:
    """What is behind the sign-in."""
    return ["/", f"/cassettes/{row.pk}/", f"/cassettes/{row.pk}/download/zip/"]


def test_a_stranger_is_asked_to_sign_in_everywhere(client: Client, two_cassettes: Two) -> None:
    for address in pages(two_cassettes[0]):
        answer = client.get(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/sign-in/?next=")
    assert client.post(f"/cassettes/{two_cassettes[0].pk}/viewings/").status_code == 401
    assert client.get("/api/cassettes").json()["code"] == "sign_in_needed"


def test_a_wrong_password_lets_nobody_in(client: Client, member: Client) -> None:
    answer = client.post("/sign-in/", {"username": "mel", "password": "not it"})
    assert answer.status_code == 200
    assert b"Name and password do not fit together" in answer.content
    assert client.get("/").status_code == 302


def test_signing_out_ends_the_session(member: Client) -> None:
    assert member.get("/").status_code == 200
    member.post("/sign-out/")
    assert member.get("/").status_code == 302


def test_a_member_watches_and_downloads(member: Client, two_cassettes: Two) -> None:
    for address in pages(two_cassettes[0]):
        assert member.get(address).status_code == 200
    opened = member.post(f"/cassettes/{two_cassettes[0].pk}/viewings/", content_type="application/json")
    assert opened.status_code == 200
    assert opened.json()["socket"].startswith("/ws/viewings/")


def test_a_member_sees_no_button_of_an_admin(member: Client, admin: Client, two_cassettes: Two) -> None:
    address = f"/cassettes/{two_cassettes[0].pk}/"
    for word in (b"Review links", b"Create link", b"Delete"):
        assert word in admin.get(address).content
        assert word not in member.get(address).content
    assert b"Upload" not in member.get("/").content


def test_a_member_changes_nothing(member: Client, two_cassettes: Two) -> None:
    row = two_cassettes[0]
    link, _ = catalog.create_link(row.pk)
    base = f"/cassettes/{row.pk}"
    file = SimpleUploadedFile("a.jsonl", b"{}")
    refused = [
        member.post("/uploads/", {"file": file}),
        member.post(f"{base}/delete/"),
        member.post(f"{base}/links/", {"expires": "7d"}),
        member.post(f"{base}/links/{link.pk}/revoke/"),
        member.delete(f"/api{base}"),
        member.patch(f"/api{base}", {"name": "x"}, content_type="application/json"),
        member.get(f"/api{base}/links"),
        member.post(f"/api{base}/links", {}, content_type="application/json"),
        member.delete(f"/api{base}/links/{link.pk}"),
        member.post(f"/api{base}/verify"),
        member.post("/api/uploads?filename=a.jsonl", b"{}", content_type="application/octet-stream"),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert Upload.objects.count() == 0
    assert catalog.get(row.pk).name == row.name
    assert ReviewLink.objects.get().is_open


def test_a_form_of_another_site_is_refused(admin: Client, two_cassettes: Two) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    answer = strict.post(f"/cassettes/{two_cassettes[0].pk}/delete/")
    assert answer.status_code == 403
    assert catalog.store().holds(two_cassettes[0].pk)


def test_a_script_with_a_cookie_of_the_api_needs_the_token_too(admin: Client, two_cassettes: Two) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = admin.cookies
    assert strict.delete(f"/api/cassettes/{two_cassettes[0].pk}").status_code in (401, 403)
    assert catalog.store().holds(two_cassettes[0].pk)


# ------------------------------------------------------------------------------------------------- review links
def test_a_review_link_opens_its_cassette_and_nothing_else(client: Client, two_cassettes: Two) -> None:
    mine, other = two_cassettes
    _, token = catalog.create_link(mine.pk)
    page = client.get(f"/review/{token}/")
    assert page.status_code == 200
    assert mine.name.encode() in page.content
    assert other.name.encode() not in page.content
    assert client.post(f"/review/{token}/viewings/", content_type="application/json").status_code == 200
    for address in pages(mine):
        assert client.get(address).status_code == 302


def test_only_a_hash_of_the_token_is_kept(two_cassettes: Two) -> None:
    link, token = catalog.create_link(two_cassettes[0].pk)
    assert len(token) == 43
    assert link.token_hash == hashlib.sha256(token.encode()).hexdigest()
    assert token not in json.dumps(list(ReviewLink.objects.values()), default=str)


def test_every_use_of_a_link_is_counted(client: Client, two_cassettes: Two) -> None:
    link, token = catalog.create_link(two_cassettes[0].pk)
    client.get(f"/review/{token}/")
    client.get(f"/review/{token}/")
    link.refresh_from_db()
    assert link.views == 2
    assert link.last_used_at is not None


@pytest.mark.parametrize("change", ["expired", "revoked", "wrong", "no token"])
def test_a_closed_link_says_the_same_whatever_the_reason(change: str, client: Client, two_cassettes: Two) -> None:
    link, token = catalog.create_link(two_cassettes[0].pk)
    if change == "expired":
        ReviewLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif change == "revoked":
        catalog.revoke_link(link.pk)
    elif change == "wrong":
        token = token[:-1] + ("A" if token[-1] != "A" else "B")
    else:
        token = "x"
    page = client.get(f"/review/{token}/")
    assert page.status_code == 410
    assert b"This review link is closed" in page.content
    opened = client.post(f"/review/{token}/viewings/")
    assert (opened.status_code, opened.json()["code"]) == (410, "review_link_closed")


def test_a_link_made_in_the_page_shows_its_address_once(admin: Client, two_cassettes: Two) -> None:
    address = f"/cassettes/{two_cassettes[0].pk}/"
    made = admin.post(f"{address}links/", {"expires": "1d", "label": "The auditors"})
    token = made.context["fresh_url"].rsplit("/", 2)[1]
    assert token.encode() in made.content
    again = admin.get(address).content
    assert token.encode() not in again
    assert b"The auditors" in again


def test_a_link_lasts_one_of_the_offered_times(two_cassettes: Two) -> None:
    with pytest.raises(InputRejected) as refused:
        catalog.create_link(two_cassettes[0].pk, expires="10y")
    assert refused.value.code == "link_expiry_invalid"


def test_a_deleted_cassette_takes_its_links_along(admin: Client, client: Client, two_cassettes: Two) -> None:
    row = two_cassettes[0]
    _, token = catalog.create_link(row.pk)
    assert admin.post(f"/cassettes/{row.pk}/delete/").status_code == 302
    assert client.get(f"/review/{token}/").status_code == 410
    assert not catalog.store().holds(row.pk)


# ------------------------------------------------------------------------------------------------- the open house
def test_in_an_open_house_whoever_is_here_is_an_admin(client: Client, settings: Settings, two_cassettes: Two) -> None:
    settings.REPRISE_OPEN = True
    assert b"Upload" in client.get("/").content
    assert client.get("/", REMOTE_ADDR="192.0.2.7").status_code == 403
    assert client.get("/", HTTP_X_FORWARDED_FOR="192.0.2.7").status_code == 403


def test_the_local_admin_of_the_open_house_cannot_sign_in_elsewhere(
    client: Client, settings: Settings, db: None
) -> None:
    settings.REPRISE_OPEN = True
    client.get("/")
    settings.REPRISE_OPEN = False
    answer = client.post("/sign-in/", {"username": "local-admin", "password": PASSWORD})
    assert answer.status_code == 200


def test_every_page_has_a_strict_content_security_policy(member: Client, two_cassettes: Two) -> None:
    for address in ("/", f"/cassettes/{two_cassettes[0].pk}/", "/sign-in/", "/nothing-here/"):
        policy = member.get(address)["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
