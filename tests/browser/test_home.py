"""Home's drawings and its three families in a real Chromium, and whose browser it is."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.visit import linked, opened

MAP = ".map svg"


def test_every_part_can_be_read_with_the_keyboard(tab, app_url):
    linked(tab, f"{app_url}/?home_view=published&preset=classic", MAP)
    panel = tab.locator(".map .panel")
    for part in tab.locator(".map .box").all():
        part.focus()
        assert part.get_attribute("aria-label")
        assert tab.locator(".map .chosen").get_attribute("data-part") == part.get_attribute("data-part")
        assert panel.locator("h2").inner_text() and panel.locator("dt").count() >= 1
    tab.locator('.map [data-part="attention"]').hover()
    expect(panel).to_contain_text("(head, query, key) = (4, 64, 64)")
    expect(panel).to_contain_text("66,048 in each block")


@pytest.mark.exhaustive
def test_the_browser_is_the_same_person_after_a_reload(page, app_url):
    def kept():
        return [c for c in page.context.cookies() if c["name"] == "glassformer"]

    opened(page, f"{app_url}/?home_view=published&preset=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", MAP)
    assert page.locator('img[src="x"]').count() == 0
    (first,) = kept()
    assert first["httpOnly"] and first["sameSite"] == "Lax" and len(first["value"]) == 87
    assert "glassformer" not in page.evaluate("document.cookie")
    page.reload()
    page.wait_for_selector(MAP)
    assert [c["value"] for c in kept()] == [first["value"]]


def test_a_click_goes_from_family_to_family_and_a_part_to_its_page(tab, app_url):
    linked(tab, f"{app_url}/?model=shakespeare-classic&text=To+be", ".gf-live canvas")
    tab.get_by_role("radio", name="Encoder").click()
    expect(tab.get_by_role("heading", name="What fills the gaps?")).to_be_visible()
    expect(tab.locator(".gf-live-heading")).to_have_text("Token here")
    expect(tab.locator(".gf-live-token").first).to_have_text("e")
    tab.get_by_role("radio", name="Both").click()
    tab.wait_for_selector(".map svg")
    settled(tab)
    expect(tab.locator(".gf-live")).to_have_count(0)
    expect(tab.locator(".map svg")).to_contain_text("Written so far")
    cross = tab.locator('.map [data-part="decoder.cross_attention"]')
    expect(cross).to_contain_text("attends to")
    cross.focus()
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(r"/crossattention\?.*cross_task=language"))
    expect(tab.get_by_role("heading", name="Cross-attention")).to_be_visible()
