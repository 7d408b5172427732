"""The shipped time-lapse in the bar: the scrubber goes through its steps, and names stand where heads formed."""

from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settled
from tests.browser.scrubbing import PICTURE, in_url, where

SLOW = 60_000
ON_TOP = """what => {
  const one = document.querySelector(what), box = one.getBoundingClientRect()
  return [0.03, 0.5, 0.97].map((share) =>
    one.contains(document.elementFromPoint(box.left + box.width * share, box.top + box.height / 2)))
}"""


def test_the_time_lapse_is_scrubbed_through_and_heads_are_named_where_they_formed(page: Page, app_url: str):
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{app_url}/circuits?circuits_view=induction&model=timelapse", wait_until="domcontentloaded")
    slider = page.locator(".gf-scrubber input[type=range]")
    slider.wait_for(timeout=SLOW)
    settled(page, SLOW)
    answer = page.locator(".st-key-answer")
    expect(answer).to_contain_text("the model copies", timeout=SLOW)
    assert where(page).startswith("step 1,000 (newest)") and in_url(page) is None
    names = page.locator(".gf-scrub-marks span")
    assert names.all_inner_texts() == ["0.3", "1.3", "1.2", "1.0"]
    boxes = [names.nth(i).bounding_box() for i in range(4)]
    assert all(one and other and one["x"] + one["width"] <= other["x"] + 1 for one, other in pairwise(boxes))

    page.wait_for_function(f"({PICTURE})() !== ''", timeout=SLOW)
    before = page.evaluate(PICTURE)
    slider.focus()
    slider.press("Home")
    page.wait_for_function("new URL(location).searchParams.get('step') === '0'", timeout=SLOW)
    page.wait_for_function(f"before => ({PICTURE})() !== before", arg=before, timeout=SLOW)
    expect(answer).to_contain_text("No induction head", timeout=SLOW)
    assert where(page).startswith("step 0 ·")

    page.goto(f"{app_url}/attention?model=timelapse&step=330", wait_until="domcontentloaded")
    slider.wait_for(timeout=SLOW)
    settled(page, SLOW)
    expect(page.locator(".gf-scrubber output")).to_contain_text("step 330 · 1.3 copies")
    track = slider.bounding_box()
    name = names.nth(0).bounding_box()
    assert track and name
    # 15th of 36 snapshots; the slider's own ends are 8 px inside
    wanted = track["x"] + 8 + (track["width"] - 16) * 14 / 35
    assert abs(name["x"] - wanted) < 3


@pytest.mark.parametrize(
    ("view", "width"), [("circuits?circuits_view=induction", 1240), ("sampling?sampling_view=stages", 1440)]
)
def test_the_scrubber_leaves_the_model_picker_clickable_beside_a_guess(
    page: Page, app_url: str, view: str, width: int
):
    page.set_viewport_size({"width": width, "height": 720})
    page.goto(f"{app_url}/{view}&model=timelapse", wait_until="domcontentloaded")
    page.locator(".gf-scrubber").wait_for(timeout=SLOW)
    page.locator(".gf-guess-pill").wait_for(timeout=SLOW)
    settled(page, SLOW)
    for what in (".st-key-subject_bar button", ".gf-guess-pill", ".gf-scrub-film"):
        assert page.evaluate(ON_TOP, what) == [True, True, True], what
