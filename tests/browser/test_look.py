"""The frame of the pages in a real Chromium: what is drawn again, what a link keeps, the terms, and ways by the keyboard."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import MOST_LINES, on_screen, open_bar, open_fold, settled
from tests.browser.visit import linked


def test_the_report_of_a_failed_test_says_what_was_on_the_screen(page):
    page.set_content("<p>first</p>" + "<p>another</p>" * (MOST_LINES + 1))
    address, state, *lines = on_screen(page).splitlines()
    assert address == "about:blank" and "'unanswered': False" in state
    assert lines == ["first", *["another"] * (MOST_LINES - 1), "(2 more lines)"]


def test_the_line_of_the_bar_says_what_is_read_and_the_folds_are_in_the_link(tab, app_url):
    linked(tab, f"{app_url}/residual?residual_view=push&model=shakespeare-classic&text=First+Citizen%3A")
    line = tab.locator(".st-key-subject_bar button").first
    expect(line).to_contain_text(re.compile("classic.*First Citizen"))
    open_bar(tab)
    tab.get_by_text("King Richard", exact=True).click()
    expect(line).to_contain_text("KING RICHARD")
    tab.keyboard.press("Escape")
    open_fold(tab, "Explanation")
    expect(tab).to_have_url(re.compile("words=true"))
    expect(tab.get_by_text("What you see")).to_be_visible()
    tab.get_by_text("Norms", exact=True).click()
    expect(tab).to_have_url(re.compile("residual_view=norms"))
    expect(tab).not_to_have_url(re.compile("words=true"))
    expect(tab.get_by_text("What you see")).to_have_count(0)


def test_the_skip_link_is_first_and_focus_is_seen_and_the_sidebar_has_its_width_at_once(page, app_url):
    """Streamlit slides it from 300 px to its width: a click that began on a button ended beside it, and was lost."""
    page.goto(f"{app_url}/sampling?words=true")
    settled(page)
    sidebar = page.get_by_test_id("stSidebar")
    assert sidebar.evaluate("e => getComputedStyle(e).transitionProperty") == "transform"
    assert sidebar.bounding_box()["width"] == 208
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


def test_a_term_is_explained_to_pointer_and_keyboard_and_leads_to_its_page(tab, app_url):
    linked(tab, f"{app_url}/sampling?words=true")
    tab.locator(".gf-terms button").first.wait_for(state="attached")
    card = tab.locator(".gf-term-card")
    term = tab.locator('[data-testid="stMain"] a[href^="#term-"]:visible').first
    term.scroll_into_view_if_needed()
    term.hover()
    expect(card).to_be_visible()
    assert term.get_attribute("aria-describedby") == card.locator("p").get_attribute("id")
    assert len(card.locator("p").inner_text()) > 20
    tab.keyboard.press("Escape")
    expect(card).to_be_hidden()
    tab.mouse.move(2, 2)
    term.focus()
    expect(card).to_be_visible()
    address = tab.url
    tab.keyboard.press("Enter")
    expect(card.get_by_role("link")).to_be_focused()
    tab.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(term).to_be_focused()
    assert tab.url == address  # what is shown has not changed
    tab.evaluate("window.stillHere = true")
    tab.get_by_role("button", name=re.compile("^Glossary")).click()
    box = tab.get_by_role("combobox", name="Find a term")
    box.fill("head")
    box.press("Escape")
    assert not tab.locator(".gf-search-box").is_visible(), "a typed word takes a second Esc"
    tab.locator(".st-key-answer").first.click(position={"x": 2, "y": 2})  # focuses the page
    tab.keyboard.press("Escape")
    ring = "getComputedStyle(document.querySelector('[data-testid=stMain]')).outlineStyle"
    assert tab.evaluate(ring) == "none", "a ring around the whole page"
    tab.get_by_role("button", name=re.compile("^Glossary")).click()
    box.fill("qqqq")
    box.press("Enter")  # before the answer, which has nothing to open
    expect(tab.get_by_text("Nothing matches")).to_be_visible()
    box.fill("rotary")
    first = tab.get_by_role("option").first
    expect(first.locator("strong")).to_have_text("RoPE")
    first.click()
    expect(tab).to_have_url(re.compile(r"/positions\?.*positions_view=rope"))
    assert tab.evaluate("window.stillHere") and not tab.locator(".gf-search-box").is_visible()


def test_on_a_phone_the_names_of_rows_are_whole_and_the_courses_answer_stands_below_their_question(
    tab, app_url
):
    tab.set_viewport_size({"width": 390, "height": 844})
    linked(tab, f"{app_url}/reference?reference_view=export")
    name = tab.locator("[data-testid=stTable] tbody th").first
    expect(name).to_contain_text("Hugging")
    assert name.bounding_box()["width"] >= 70
    linked(tab, f"{app_url}/courses")
    main = tab.get_by_test_id("stMain")
    question, answer = (main.locator(at).first.bounding_box() for at in ("h2", ".st-key-answer"))
    assert question["y"] + question["height"] <= answer["y"]
