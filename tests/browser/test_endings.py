"""Whatever ends — worker, server, tab —, nothing is left, and the viewer says what happened."""

from __future__ import annotations

import os
import signal

from playwright.sync_api import Page, expect

from tests.browser.steps import LONG_MS, open_cassette, wait_for_end
from tests.server import Server, alive, wait_until

NAME = "Codex: a small coding task"
SLOW = "?speed=0.25&idle=off"


def _watch(page: Page, site: Server) -> list[int]:
    open_cassette(page, site, NAME, SLOW)
    expect(page.locator(".prompt").first).to_be_visible(timeout=LONG_MS)
    assert len(site.workers()) == 1
    assert len(site.worker_folders()) == 1
    assert list(site.worker_folders()[0].glob("*.sqlite3"))
    return site.workers()


def test_a_killed_worker_leaves_nothing_and_the_viewer_can_start_again(page: Page, own_site: Server) -> None:
    [worker] = _watch(page, own_site)
    os.kill(worker, signal.SIGKILL)
    expect(page.locator(".banner")).to_contain_text("ended from outside", timeout=LONG_MS)
    assert wait_until(lambda: not own_site.worker_folders())
    assert not alive(worker)

    page.get_by_role("combobox", name="Speed").select_option("64")
    page.get_by_role("button", name="Start again").click()
    expect(page.locator(".banner")).to_be_hidden(timeout=LONG_MS)
    page.get_by_role("combobox", name="Speed").select_option("32")
    wait_for_end(page)


def test_a_closed_tab_leaves_nothing(page: Page, own_site: Server) -> None:
    [worker] = _watch(page, own_site)
    page.goto("about:blank")
    assert wait_until(lambda: not alive(worker) and not own_site.worker_folders())
    assert own_site.workers() == []


def test_a_reload_is_a_viewing_of_its_own_and_the_old_one_ends(page: Page, own_site: Server) -> None:
    [worker] = _watch(page, own_site)
    page.reload()
    expect(page.locator(".prompt").first).to_be_visible(timeout=LONG_MS)
    assert wait_until(lambda: not alive(worker))
    assert wait_until(lambda: len(own_site.worker_folders()) == 1)


def test_a_killed_server_leaves_no_process_and_no_folder(page: Page, own_site: Server) -> None:
    workers = _watch(page, own_site)
    forks = own_site.fork_servers()
    own_site.stop(signal.SIGKILL)
    expect(page.locator(".banner")).to_contain_text("connection to the server is lost", timeout=LONG_MS)
    assert wait_until(lambda: not any(alive(one) for one in [*workers, *forks]))
    assert own_site.worker_folders() == []

    own_site.start()  # the same address: the viewer comes back by itself
    page.get_by_role("combobox", name="Speed").select_option("64")
    expect(page.locator(".banner")).to_be_hidden(timeout=LONG_MS)
    wait_for_end(page)


def test_a_killed_fork_server_takes_its_workers_along_and_another_takes_its_place(page: Page, own_site: Server) -> None:
    [worker] = _watch(page, own_site)
    [fork] = own_site.fork_servers()
    os.kill(fork, signal.SIGKILL)
    page.goto("about:blank")
    assert wait_until(lambda: not alive(worker))
    assert wait_until(lambda: not own_site.worker_folders())
    _watch(page, own_site)
