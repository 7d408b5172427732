"""What a page asks for by itself does not get in the way of clicks: late on a slow network, in one message with
them, or in one before.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import after_frames, settled

pytestmark = pytest.mark.exhaustive

LATE_MS = 350  # for each message to the browser
# Before anything else on the page: what the server says is heard LATE_MS later, where `late` says so.
SLOW = """(() => {
  const Real = window.WebSocket
  const later = (hear) => (event) => setTimeout(() => hear(event), window.late ?? 0)
  window.WebSocket = class extends Real {
    set onmessage(hear) { super.onmessage = later(hear) }
    addEventListener(name, hear, ...rest) { super.addEventListener(name, name === "message" ? later(hear) : hear, ...rest) }
  }
})()"""
# The stage tells its address 300 ms after it has changed, if it knows of no run: here Start was pressed before.
PRESS = """([name, milliseconds]) => {
  history.replaceState(history.state, "", `${location.href}&pressed=${milliseconds}`)
  setTimeout(() => document.querySelector(`.st-key-start_${name} button`).click(), milliseconds)
}"""


def test_a_part_of_the_page_that_was_left_does_not_blank_the_next(page: Page, app_url: str) -> None:
    page.add_init_script(SLOW)
    page.goto(f"{app_url}/courses?stage=1")
    start = page.locator(".st-key-start_ten-minutes button")
    start.wait_for()
    settled(page)
    after_frames(page, 60)  # its address has been told
    page.evaluate(f"window.late = {LATE_MS}")
    page.evaluate(PRESS, ["ten-minutes", 60])
    expect(page.locator(".gf-tour-where")).to_have_text(re.compile("^1 of "))
    settled(page)
    after_frames(page, 100)  # the late request has been heard, and what it led to
    settled(page)
    assert "scene=1" in page.url
    expect(page.locator('[data-testid="stMain"] .st-key-answer').first).to_be_visible()
    expect(page.locator('[data-testid="stMain"] canvas').first).to_be_visible()


# A browser so busy that what was pressed is sent late: after the part that shows the run has asked to be drawn again.
BUSY = """(() => {
  const real = window.setTimeout
  window.setTimeout = (f, ms, ...rest) => real(f, window.busy && !ms ? 1200 : ms, ...rest)
})()"""


def test_a_click_that_is_sent_twice_is_carried_out_once(page: Page, app_url: str) -> None:
    page.add_init_script(BUSY)
    sent: list[bytes] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda one: sent.append(one)))
    page.goto(
        f"{app_url}/ladder?ladder_view=race&ladder_rungs=Last+letter&ladder_rungs=Average&ladder_text=python"
        "&ladder_steps=1200"
    )
    start, pause, resume, end = (
        page.get_by_role("button", name=name, exact=True).first
        for name in ("Race", "Pause", "Resume", "Cancel")
    )
    expect(start).to_be_enabled()
    settled(page)
    start.click()
    expect(pause).to_be_enabled()
    page.wait_for_function("document.querySelectorAll('.st-key-race_panel [role=progressbar]').length > 0")
    sent.clear()
    page.evaluate("window.busy = true")
    pause.click()
    after_frames(page, 6)
    page.evaluate("window.busy = false")
    expect(resume).to_be_visible()
    after_frames(page, 180)  # what was sent twice has been heard twice
    assert sum(b"race_go_ladder" in one for one in sent) >= 2
    expect(resume).to_be_visible()
    end.click()
    expect(start).to_be_enabled()
