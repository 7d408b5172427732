"""The residual stream's page in a real Chromium: a cell is clicked, the highway is measured to its end."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.visit import opened

ADDRESS = "residual?text=First%20Citizen%3A%0A"  # 15 tokens
FIGURE = ".gf-figure .main-svg"
SLOW = 90_000


def test_a_click_on_a_cell_opens_it_and_the_link_reproduces_it(page, app_url):
    opened(page, f"{app_url}/{ADDRESS}&residual_view=Logit+lens&measure=true", FIGURE)
    page.locator(".st-key-residual_table").scroll_into_view_if_needed()
    settled(page)
    area = page.locator(".st-key-residual_table .gf-figure .nsewdrag").first.bounding_box()
    page.mouse.click(
        area["x"] + area["width"] * 3.5 / 15, area["y"] + area["height"] * 3.5 / 5
    )  # the fourth token, the second row from below
    expect(page).to_have_url(re.compile(r"residual_cell=1-3"))
    expect(page.get_by_text("after block 0, after token 3")).to_be_visible()
    opened(page, f"{app_url}/{ADDRESS}&residual_cell=4-5&measure=true", FIGURE)
    expect(page.get_by_text("after block 3 = output, after token 5")).to_be_visible()


def test_the_highway_is_measured_to_its_end_without_losing_a_figure(page, app_url):
    opened(
        page,
        f"{app_url}/{ADDRESS}&residual_view=The+gradient+highway&residual_deepest=24&residual_seeds=1&measure=true",
        FIGURE,
    )
    page.evaluate("window.figure = document.querySelector('.gf-figure')")
    expect(page.get_by_text("fresh models, none of them trained")).to_be_visible(timeout=SLOW)
    assert page.evaluate(
        "window.figure.isConnected && document.querySelectorAll('.gf-figure .main-svg').length >= 4"
    )
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    expect(page.locator("table")).to_contain_text("first ÷ last")
