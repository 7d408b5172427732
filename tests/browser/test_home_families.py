"""Home's three families in a real Chromium: one click from one to the next, and from a part to its page."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled


def test_a_click_goes_from_family_to_family_and_a_part_to_its_page(page, app_url):
    page.goto(f"{app_url}/?model=shakespeare-classic")
    page.wait_for_selector(".gf-live canvas")
    settled(page)
    page.get_by_role("radio", name="Encoder").click()
    expect(page.get_by_role("heading", name="A text has gaps: what stands there?")).to_be_visible()
    expect(page.locator(".gf-live-heading")).to_have_text("Token here")
    expect(page.locator(".gf-live-token").first).to_have_text("e")
    page.get_by_role("radio", name="Both").click()
    page.wait_for_selector(".map svg")
    settled(page)
    expect(page.locator(".gf-live")).to_have_count(0)
    expect(page.locator(".map svg")).to_contain_text("Written so far")
    cross = page.locator('.map [data-part="decoder.cross_attention"]')
    expect(cross).to_contain_text("looks at")
    cross.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/crossattention\?.*cross_task=language"))
    expect(page.get_by_role("heading", name="Cross-attention")).to_be_visible()


@pytest.mark.exhaustive
def test_two_towers_fit_a_screen_and_a_phone(page, app_url):
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{app_url}/?model=pair-language")
    page.wait_for_selector(".map svg")
    settled(page)
    box = page.locator(".map svg").bounding_box()
    assert box["y"] + box["height"] < 720, "the whole map is seen at once"
    inside = """() => [...document.querySelectorAll('.map .box text')].filter((text) => {
      const box = text.parentNode.querySelector('rect').getBBox(), words = text.getBBox()
      return words.x < box.x || words.x + words.width > box.x + box.width || words.y < box.y - 4 || words.y + words.height > box.y + box.height + 4
    }).map((text) => text.textContent)"""
    assert page.evaluate(inside) == []
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_selector(".map.tall svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(inside) == []
