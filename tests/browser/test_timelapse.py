"""Training time in a real Chromium: the newest of a run is followed, and the shipped time-lapse is gone through."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import after_frames, settled
from tests.browser.scrubbing import PICTURE, in_url, where
from tests.browser.training import LINK, begun, button

STEP = (
    r"() => Number(document.querySelector('.gf-scrubber output').innerText.match(/step"
    r" ([\d,]+)/)[1].replaceAll(',', ''))"
)
WATCH = """() => {
  window.__removed = 0
  window.__marks = [...document.querySelectorAll('.gf-figure')]
  new MutationObserver((changes) => changes.forEach((change) => change.removedNodes.forEach((node) => {
    if (node.nodeType === 1 && (node.matches('.gf-figure, .gf-plot, .gf-scrubber') || node.querySelector('.gf-figure, .gf-scrubber'))) window.__removed++
  }))).observe(document.body, { childList: true, subtree: true })
}"""


def step_of(page: Page) -> int:
    return page.evaluate(STEP)


def test_an_arrow_key_goes_back_in_training_time_and_the_newest_is_followed(page: Page, app_url: str):
    link = LINK.replace("steps=400", "steps=3000").replace("snapshot_every=50", "snapshot_every=100")
    begun(page, app_url, link, steps=60)
    page.wait_for_function("location.search.includes('run=')")
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Feed-forward").click()
    slider = page.locator(".gf-scrubber input[type=range]")
    slider.wait_for()
    settled(page)
    # The run in hand, without having been asked for.
    assert "model=run-" in page.url and in_url(page) is None and "(newest)" in where(page)

    first = step_of(page)
    page.wait_for_function(f"first => ({STEP})() > first", arg=first)
    assert "(newest)" in where(page) and in_url(page) is None  # it followed

    page.wait_for_function(f"({PICTURE})() !== ''")
    settled(page)
    page.evaluate(WATCH)
    before, newest = page.evaluate(PICTURE), step_of(page)
    slider.focus()
    slider.press("Home")
    page.wait_for_function("new URL(location).searchParams.get('step') === '0'")
    page.wait_for_function(f"before => ({PICTURE})() !== before", arg=before)
    settled(page)
    assert step_of(page) == 0 < newest
    after_frames(page, 120)  # the training goes on, and what is looked at stays
    assert step_of(page) == 0 and in_url(page) == "0"

    slider.press("End")
    page.wait_for_function(
        "!location.search.includes('step=') && document.querySelector('.gf-scrubber"
        " output').innerText.includes('(newest)')"
    )
    assert page.evaluate("window.__removed === 0 && window.__marks.every((node) => node.isConnected)")
    page.get_by_role("link", name="Back to this run").click()
    button(page, "Stop").click()


ON_TOP = """what => {
  const one = document.querySelector(what), box = one.getBoundingClientRect()
  return [0.03, 0.5, 0.97].map((share) =>
    one.contains(document.elementFromPoint(box.left + box.width * share, box.top + box.height / 2)))
}"""


@pytest.mark.parametrize(
    ("view", "width"), [("circuits?circuits_view=induction", 1240), ("sampling?sampling_view=stages", 1440)]
)
def test_the_scrubber_leaves_the_model_picker_clickable_beside_a_guess(
    page: Page, app_url: str, view: str, width: int
):
    page.set_viewport_size({"width": width, "height": 720})
    page.goto(f"{app_url}/{view}&model=timelapse", wait_until="domcontentloaded")
    page.locator(".gf-scrubber").wait_for()
    page.locator(".gf-guess-pill").wait_for()
    settled(page)
    for what in (".st-key-subject_bar button", ".gf-guess-pill", ".gf-scrub-film"):
        assert page.evaluate(ON_TOP, what) == [True, True, True], what
