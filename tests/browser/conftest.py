"""Chromium, a server with the demo, and pages that report whatever the browser complains of."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.server import Server

# Chromium in a container of root; nothing of it may talk to the outside.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. It goes with its module: Playwright's event loop in this thread is in the way of others."""
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    assert program is not None, "the browser tests need Chromium: apt-get install chromium"
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps an event loop in this thread
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared home; each server gets a copy of it."""
    home = tmp_path_factory.mktemp("home")
    Server(home).prepare()
    return home


@pytest.fixture(scope="session")
def site(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An open house with the demo, for tests that leave it as it is."""
    yield from _serve(demo_home, tmp_path_factory.mktemp("site"))


@pytest.fixture
def own_site(demo_home: Path, tmp_path: Path) -> Iterator[Server]:
    """An open house for a test that ends processes."""
    yield from _serve(demo_home, tmp_path)


def _serve(demo_home: Path, folder: Path) -> Iterator[Server]:
    home = folder / "home"
    shutil.copytree(demo_home, home)
    server = Server(home)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a fresh profile. What the console says at the end of the test must be expected."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
    yield opened
    context.close()
    assert complaints == []
