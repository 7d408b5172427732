"""The home page and its figure-drawing neighbour in a real Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.server import serve

INSIDE = """(text) => {
  const box = text.parentNode.querySelector("rect").getBBox(), words = text.getBBox()
  return words.x >= box.x && words.x + words.width <= box.x + box.width
}"""


def open_home(page, url, query="?home_view=published"):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}/{query}")
    page.wait_for_selector(".map svg")
    settled(page)
    return problems


def test_choosing_a_preset_redraws_the_map_and_the_link_reproduces_it(page, app_url):
    problems = open_home(page, app_url)
    drawing = page.locator(".map svg")
    expect(drawing).to_contain_text("RoPE")
    page.get_by_role("button", name="bert-base").or_(page.get_by_role("radio", name="bert-base")).click()
    expect(drawing).to_contain_text("Block × 12")
    expect(drawing).not_to_contain_text("causal mask")
    expect(page).to_have_url(re.compile(r"preset=bert-base"))
    open_home(page, app_url, "?preset=bert-base")
    expect(drawing).to_contain_text("Block × 12")
    assert problems == []


def test_every_part_can_be_read_with_the_keyboard(page, app_url):
    open_home(page, app_url, "?preset=classic")
    panel = page.locator(".map .panel")
    for part in page.locator(".map .box").all():
        part.focus()
        name = part.get_attribute("data-part")
        assert part.get_attribute("aria-label")
        assert page.locator(".map .chosen").get_attribute("data-part") == name
        assert panel.locator("h2").inner_text() and panel.locator("dt").count() >= 1
    page.locator('.map [data-part="attention"]').hover()
    expect(panel).to_contain_text("(head, query, key) = (4, 64, 64)")
    expect(panel).to_contain_text("66,048 in each block")


@pytest.mark.exhaustive
def test_a_phone_gets_the_tall_map_and_no_sideways_scrolling(page, app_url):
    page.set_viewport_size({"width": 360, "height": 800})
    open_home(page, app_url, "?preset=llama2-70b")
    assert page.locator(".map.tall").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for text in page.locator(".map svg .box text").all():
        assert text.evaluate(INSIDE), text.text_content()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_selector(".map.wide svg")


def test_what_is_in_the_url_never_becomes_part_of_the_page(page, app_url):
    problems = open_home(page, app_url, "?preset=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    assert page.locator('img[src="x"]').count() == 0 and problems == []
    expect(page.locator(".map svg")).to_contain_text("Block × 4")


def test_the_browser_is_the_same_person_after_a_reload(page, app_url):
    """By a key that the server has signed, and that no script of a page can read."""

    def kept():
        return [c for c in page.context.cookies() if c["name"] == "glassformer"]

    open_home(page, app_url)
    (first,) = kept()
    assert first["httpOnly"] and first["sameSite"] == "Lax" and len(first["value"]) == 87
    assert "glassformer" not in page.evaluate("document.cookie")
    open_home(page, app_url)
    assert [c["value"] for c in kept()] == [first["value"]]


@pytest.mark.exhaustive
def test_train_one_now_leads_to_the_training_page(page, app_url):
    open_home(page, app_url, "?preset=modern")
    page.get_by_role("button", name="Train one now").click()
    expect(page).to_have_url(re.compile(r"/train\?.*preset=modern"))
    page.get_by_role("button", name="Stop", exact=True).click()  # it is there because the training has begun
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)
    expect(page).to_have_url(re.compile(r"run="))


@pytest.mark.exhaustive
def test_a_deep_link_is_served_by_a_server_that_nobody_has_visited(browser, tmp_path):
    """Streamlit would answer "Page not found" to the first visitor of a process (see ui/server.py)."""
    with serve(tmp_path) as url:
        page = browser.new_page()
        page.goto(f"{url}/train?preset=modern")
        page.get_by_role("button", name="Train", exact=True).wait_for(timeout=60_000)
        settled(page)
        expect(page.get_by_text("Page not found")).to_have_count(0)
        page.close()
