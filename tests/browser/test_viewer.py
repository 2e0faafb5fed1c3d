"""A person watches a Cassette: plays, pauses, changes the speed, jumps back, starts again."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import LONG_MS, elapsed_seconds, open_cassette, wait_for_end, wait_for_phase
from tests.server import Server

DEMO = [
    "Claude Code: a small coding task",
    "Claude Code: questions and a plan",
    "Claude Code: work given to subagents",
    "Claude Code: interrupted by the person",
    "Claude Code: errors of the model service",
    "Codex: a small coding task",
    "Codex: commands that needed approval",
    "Codex: interrupted by the person",
    "Codex: work given to subagents",
]
CODEX = "Codex: a small coding task"
CLAUDE = "Claude Code: a small coding task"


@pytest.mark.parametrize("name", DEMO)
def test_a_demo_cassette_plays_to_its_end_and_is_equal(name: str, page: Page, site: Server) -> None:
    open_cassette(page, site, name, "?speed=64")
    wait_for_end(page)
    marks = page.locator(".checkpoints li")
    total = marks.count()
    assert total > 5
    expect(page.locator(".checkpoints li.reached")).to_have_count(total)
    expect(page.locator(".verdict")).to_contain_text("Equal")
    expect(page.locator(".verdict .layers li.good")).to_have_count(5)
    expect(page.locator(".end-card")).to_contain_text("Equal")


def test_the_transcript_shows_prompts_answers_commands_and_diffs(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?speed=64")
    wait_for_end(page)
    stream = page.locator(".stream")
    expect(stream.locator(".prompt").first).to_have_text("The tests fail. Find out why and fix it.")
    expect(stream.locator(".tool", has_text="cat calc.py").first).to_contain_text("exit 0")
    expect(stream.locator(".tool-failed", has_text="touch ").first).to_contain_text("exit 1")
    expect(stream.locator(".diff .line.remove").first).to_contain_text("return a - b")
    expect(stream.locator(".diff .line.add").first).to_contain_text("return a + b")
    expect(stream.locator(".answer li").first).to_have_text("2 tests pass")  # Markdown, not its source
    assert not stream.locator(".reasoning").first.evaluate("one => one.open")
    assert "${REPLAY" not in stream.inner_text()


def test_pause_speed_jump_back_and_restart(page: Page, site: Server) -> None:
    open_cassette(page, site, CLAUDE, "?speed=0.5")
    wait_for_phase(page, "replaying")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play (Space)")).to_be_visible()

    page.get_by_role("combobox", name="Speed").select_option("64")
    page.get_by_role("button", name="Play (Space)").click()
    wait_for_end(page)
    reached = page.locator(".checkpoints li.reached")
    total = reached.count()

    page.get_by_role("button", name="Checkpoint 6: ").click()  # back: another worker fast-forwards to it
    expect(reached).to_have_count(6, timeout=LONG_MS)
    expect(page.get_by_role("button", name="Play (Space)")).to_be_visible()
    expect(page.locator(".verdict")).to_have_attribute("data-verdict", "open")

    page.keyboard.press("]")
    expect(reached).to_have_count(7, timeout=LONG_MS)

    page.keyboard.press("Home")
    wait_for_end(page)
    expect(reached).to_have_count(total)


def test_step_mode_stops_at_every_checkpoint(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?checkpoint=1")
    page.get_by_label("Step").check()
    reached = page.locator(".checkpoints li.reached")
    before = reached.count()
    page.get_by_role("button", name="Play (Space)").click()
    expect(page.get_by_role("button", name="Play (Space)")).to_be_visible(timeout=LONG_MS)
    expect(reached).not_to_have_count(before, timeout=LONG_MS)
    assert reached.count() < page.locator(".checkpoints li").count()


def test_an_address_with_a_time_opens_paused_at_that_moment(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?t=0:03")
    expect(page.get_by_role("button", name="Play (Space)")).to_be_visible(timeout=LONG_MS)
    expect(page.locator(".tool").first).to_be_visible(timeout=LONG_MS)
    assert elapsed_seconds(page) == 3
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("slider", name="Playback position")).to_have_attribute(
        "aria-valuenow", re.compile("7|8"), timeout=LONG_MS
    )


def test_the_bar_seeks_by_pointer_and_by_arrow_keys(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?speed=64")
    wait_for_end(page)
    bar = page.get_by_role("slider", name="Playback position")
    box = bar.bounding_box()
    assert box is not None
    page.get_by_role("combobox", name="Speed").select_option("0.25")
    page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] / 2)
    expect(bar).to_have_attribute("aria-valuenow", "2", timeout=LONG_MS)
    bar.focus()
    page.keyboard.press("ArrowLeft")
    expect(bar).to_have_attribute("aria-valuenow", "0", timeout=LONG_MS)


def test_scrolling_up_is_left_alone_until_the_reader_asks(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?speed=64")
    wait_for_end(page)
    stream = page.locator(".stream")
    stream.hover()
    page.mouse.wheel(0, -5000)
    chip = page.get_by_role("button", name="Back to playback")
    expect(chip).to_be_visible()
    assert stream.evaluate("one => one.scrollTop") == 0
    chip.click()
    expect(chip).to_be_hidden()
    assert stream.evaluate("one => one.scrollHeight - one.scrollTop - one.clientHeight") < 5


def test_shortcuts_are_listed_and_escape_closes_them(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?t=1")
    expect(page.locator(".controls")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()


def test_a_late_viewer_sees_what_the_first_one_sees(page: Page, site: Server) -> None:
    """The socket's address is the viewing: a second socket on it catches up."""
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    open_cassette(page, site, CODEX, "?speed=64")
    wait_for_end(page)
    kinds = page.evaluate(
        """address => new Promise((resolve, reject) => {
            const seen = [];
            const socket = new WebSocket(address);
            socket.onopen = () => socket.send(JSON.stringify({kind: "hello", generation: 0, after: 0}));
            socket.onerror = () => reject(new Error("refused"));
            socket.onmessage = message => {
                const told = JSON.parse(message.data);
                for (const event of told.events ?? []) seen.push(event.type);
                if (seen.includes("verification")) resolve(seen);
            };
        })""",
        sockets[0],
    )
    assert {"opened", "session", "turn", "message", "checkpoint", "playback", "verification"} <= set(kinds)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_sticks_out_of_the_page(width: int, scheme: str, page: Page, site: Server) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(site.url + "/")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    open_cassette(page, site, CODEX, "?speed=64")
    expect(page.locator(".viewer[data-phase=complete]")).to_be_attached(timeout=LONG_MS)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".stream").evaluate("one => one.scrollWidth <= one.clientWidth")
    if width == 390:
        page.get_by_role("button", name="Details").click()
        expect(page.locator(".verdict[data-verdict=equal]")).to_be_visible()


def test_single_events_go_back_and_forth(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?t=0:02")
    expect(page.get_by_role("button", name="Play (Space)")).to_be_visible(timeout=LONG_MS)
    items = page.locator(".transcript:not(.stale) .item")
    expect(items.first).to_be_visible(timeout=LONG_MS)
    before = items.all_inner_texts()
    for _ in range(3):
        page.keyboard.press(".")
    expect(page.locator(".stream")).not_to_have_text("\n".join(before))
    page.wait_for_function("before => [...document.querySelectorAll('.item')].length >= before", arg=len(before))
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    wait_for_phase(page, "replaying")


def test_what_is_looked_for_is_found_and_stepped_through(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?speed=64")
    wait_for_end(page)
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Find in this session")
    expect(box).to_be_focused()
    box.fill("RETURN A - B")
    expect(page.locator(".find .count")).to_have_text(re.compile(r"\d+ hits?"))
    box.press("Enter")
    expect(page.locator(".find .count")).to_have_text(re.compile(r"1 of \d+"))
    box.press("Escape")
    expect(box).to_be_hidden()


def test_d_shows_the_last_change_to_a_file(page: Page, site: Server) -> None:
    open_cassette(page, site, CODEX, "?speed=64")
    wait_for_end(page)
    page.keyboard.press("m")  # everything folded
    expect(page.locator(".diff").last).to_be_hidden()
    page.keyboard.press("d")
    expect(page.locator(".diff").last).to_be_in_viewport()
