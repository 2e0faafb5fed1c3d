"""Review links: what they open, for whom, and how they close."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests.browser.steps import LONG_MS, open_cassette, wait_for_end
from tests.server import Server


def test_a_review_link_opens_one_cassette_in_a_clean_profile_and_closes_when_revoked(
    page: Page, browser: Browser, own_site: Server
) -> None:
    open_cassette(page, own_site, "Codex: a small coding task", "?t=1")
    page.get_by_text("Share").click()
    page.get_by_label("For whom").fill("The reviewers")
    page.get_by_role("button", name="Create link").click()
    address = page.locator("#fresh-url").inner_text()
    assert address.startswith(own_site.url + "/review/")

    # The demo server is an open house for its own machine, so the right comes from a server that is not.
    own_site.stop()
    closed_house = Server(own_site.home, open_house=False)
    closed_house.start()
    address = address.replace(own_site.url, closed_house.url)
    clean = browser.new_context()
    guest = clean.new_page()
    try:
        guest.goto(closed_house.url + "/")
        expect(guest).to_have_url(closed_house.url + "/sign-in/?next=/")
        guest.goto(address + "?speed=64")
        wait_for_end(guest)
        expect(guest.locator(".prompt").first).to_be_visible()
        expect(guest.get_by_text("Share")).to_have_count(0)

        told = closed_house.manage("shell", "-c", _REVOKE)
        assert told.returncode == 0, told.stderr
        guest.reload()
        expect(guest.get_by_role("heading", name="This review link is closed")).to_be_visible()
    finally:
        clean.close()
        closed_house.stop()


_REVOKE = "from cassettes import catalog, models; catalog.revoke_link(models.ReviewLink.objects.get().pk)"


def test_revoking_closes_the_viewer_of_somebody_who_watches(page: Page, browser: Browser, site: Server) -> None:
    open_cassette(page, site, "Codex: commands that needed approval", "?t=1")
    page.get_by_text("Share").click()
    page.get_by_role("button", name="Create link").click()
    address = page.locator("#fresh-url").inner_text()
    clean = browser.new_context()
    guest = clean.new_page()
    try:
        guest.goto(address + "?speed=0.25&idle=off")
        expect(guest.locator(".prompt").first).to_be_visible(timeout=LONG_MS)
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Revoke").click()
        expect(page.get_by_text("The review link was revoked.")).to_be_visible()
        expect(guest.locator(".banner")).to_contain_text("revoked", timeout=LONG_MS)
        expect(guest.locator(".prompt")).to_have_count(0)
    finally:
        clean.close()
