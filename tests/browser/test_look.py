"""The frame of the pages in a real Chromium: what is drawn again, what a link keeps, the terms, and ways by the keyboard."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import open_bar, open_fold, settled


def test_the_line_of_the_bar_says_what_is_read_and_the_folds_are_in_the_link(page, app_url):
    page.goto(f"{app_url}/residual?residual_view=push")
    line = page.locator(".st-key-subject_bar button").first
    expect(line).to_contain_text(re.compile("classic.*First Citizen"))
    settled(page)
    open_bar(page)
    page.get_by_text("King Richard", exact=True).click()
    expect(line).to_contain_text("KING RICHARD")
    page.keyboard.press("Escape")
    open_fold(page, "Explanation")
    expect(page).to_have_url(re.compile("words=true"))
    page.reload()
    expect(page.get_by_text("What you see")).to_be_visible()
    page.get_by_text("Norms", exact=True).click()
    expect(page).to_have_url(re.compile("residual_view=norms"))
    expect(page).not_to_have_url(re.compile("words=true"))
    expect(page.get_by_text("What you see")).to_have_count(0)


def ready(page, address: str) -> None:
    page.goto(address)
    settled(page)
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


def test_the_sidebar_has_its_width_at_once(page, app_url):
    """Streamlit slides it from 300 px to its width: a click that began on a button ended beside it, and was lost."""
    ready(page, f"{app_url}/courses")
    sidebar = page.get_by_test_id("stSidebar")
    assert sidebar.evaluate("e => getComputedStyle(e).transitionProperty") == "transform"
    assert sidebar.bounding_box()["width"] == 208


def test_on_a_phone_the_names_of_rows_are_whole_and_the_courses_answer_stands_below_their_question(
    page, app_url
):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app_url}/reference?reference_view=export")
    name = page.locator("[data-testid=stTable] tbody th").first
    expect(name).to_contain_text("Hugging")
    settled(page)
    assert name.bounding_box()["width"] >= 70
    page.goto(f"{app_url}/courses")
    page.locator(".st-key-answer").wait_for()
    settled(page)
    question, answer = page.locator("h2").first.bounding_box(), page.locator(".st-key-answer").bounding_box()
    assert question["y"] + question["height"] <= answer["y"]
