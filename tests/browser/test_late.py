"""What a page asks for by itself does not get in the way of clicks."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import after_frames, settled

pytestmark = pytest.mark.exhaustive


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
