"""What a person does in the viewer."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.server import Server

LONG_MS = 60_000  # only ends a test that would never end


def open_cassette(page: Page, site: Server, name: str, query: str = "") -> None:
    """From the list to the viewer."""
    page.goto(site.url + "/")
    link = page.get_by_role("link", name=name, exact=True)
    page.goto(site.url + str(link.get_attribute("href")) + query)


def wait_for_end(page: Page) -> None:
    """Until the replay has its verdict."""
    expect(page.locator(".viewer[data-phase=complete]")).to_be_visible(timeout=LONG_MS)
    expect(page.locator(".verdict[data-verdict=equal]")).to_be_visible(timeout=LONG_MS)


def wait_for_phase(page: Page, phase: str) -> None:
    """Until the replay is in a phase."""
    expect(page.locator(f".viewer[data-phase={phase}]")).to_be_visible(timeout=LONG_MS)


def elapsed_seconds(page: Page) -> int:
    """The position that a screen reader would say."""
    return int(page.get_by_role("slider", name="Playback position").get_attribute("aria-valuenow") or 0)
