"""Who uses no mouse, or does not see the screen: focus, the terms by the keyboard, and ways without a new load."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import settled


def ready(page, address: str) -> None:
    page.goto(address)
    settled(page, 60_000)
    page.locator(".gf-terms button").first.wait_for(state="attached")


def test_the_skip_link_is_first_and_focus_is_seen(page, app_url):
    ready(page, f"{app_url}/sampling")
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    expect(focused).to_have_attribute("data-testid", "stSkipToContent")
    expect(focused).to_be_visible()
    for _ in range(12):
        page.keyboard.press("Tab")
        style = page.evaluate(
            "() => { const s = getComputedStyle(document.activeElement);"
            " return [s.outlineStyle, parseFloat(s.outlineWidth), s.boxShadow] }"
        )
        assert (style[0] != "none" and style[1] >= 2) or style[2] != "none", page.evaluate(
            "document.activeElement.outerHTML.slice(0, 200)"
        )


def test_a_term_is_explained_to_pointer_and_keyboard_and_leads_to_its_page(page, app_url):
    ready(page, f"{app_url}/sampling?words=true")
    card = page.locator(".gf-term-card")
    term = page.locator('[data-testid="stMain"] a[href^="#term-"]:visible').first
    term.scroll_into_view_if_needed()
    term.hover()
    expect(card).to_be_visible()
    assert term.get_attribute("aria-describedby") == card.locator("p").get_attribute("id")
    assert len(card.locator("p").inner_text()) > 20
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.mouse.move(2, 2)
    term.focus()
    expect(card).to_be_visible()
    address = page.url
    page.keyboard.press("Enter")
    expect(card.get_by_role("link")).to_be_focused()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(term).to_be_focused()
    assert page.url == address  # what is shown has not changed
    page.evaluate("window.stillHere = true")
    page.get_by_role("button", name=re.compile("^Words")).click()
    page.get_by_role("searchbox", name="Find a word").fill("rope")
    expect(page.locator(".gf-term-list dt").first).to_have_text("RoPE")
    page.locator(".gf-term-list").get_by_role("link", name="See it: Positions").first.click()
    expect(page).to_have_url(re.compile(r"/positions\?.*positions_view=rope"))
    assert page.evaluate("window.stillHere") and not page.locator(".gf-term-list").is_visible()


def test_the_strip_leads_to_the_part_on_home(page, app_url):
    ready(page, f"{app_url}/feedforward")
    page.evaluate("window.stillHere = true")
    page.get_by_role("link", name="You are here on the map: feed-forward network").click()
    expect(page).to_have_url(re.compile(r"/\?(.*&)?part=feedforward"))
    expect(page.locator(".gf-live-card")).to_have_attribute("data-part", "feedforward")
    assert page.evaluate("window.stillHere")
