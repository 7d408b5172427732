"""The frame of the pages that look into a model: what is drawn again, and what a view may ask of the bar."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import open_bar, open_fold, settled


def test_a_view_is_kept_by_its_link_and_reads_the_text_of_the_bar(page, app_url):
    page.goto(f"{app_url}/residual")
    page.wait_for_selector(".gf-figure .main-svg")
    settled(page)
    page.get_by_text("Norms", exact=True).click()
    expect(page).to_have_url(re.compile("residual_view=norms"))
    page.reload()
    expect(page.get_by_role("radio", name="Norms")).to_be_checked()
    settled(page)
    page.get_by_text("Logit lens", exact=True).click()
    settled(page)
    open_bar(page)
    text = page.locator('[data-testid="stTextArea"] textarea')
    text.fill("ROMEO:")
    text.press("Control+Enter")
    expect(page.locator(".gf-figure").first).to_have_attribute("aria-label", re.compile("after token [0-5],"))


def test_going_back_leads_through_the_views_to_the_first_and_out_of_the_page(page, app_url):
    page.goto(f"{app_url}/sampling")
    page.goto(f"{app_url}/tokens")
    first, last = (page.get_by_role("radio", name=name) for name in ("BPE", "Vocabulary size"))
    expect(first).to_be_checked(timeout=60_000)
    settled(page)
    last.click()
    expect(page).to_have_url(re.compile("tokens_view=cost"))
    settled(page)
    page.go_back()
    expect(first).to_be_checked()
    settled(page)
    assert "tokens_view" not in page.url
    page.go_back()
    expect(page).to_have_url(re.compile("/sampling"))


def test_the_line_of_the_bar_says_what_is_read_and_the_folds_are_in_the_link(page, app_url):
    page.goto(f"{app_url}/residual?residual_view=push")
    line = page.locator(".st-key-subject_bar button").first
    expect(line).to_contain_text(re.compile("classic.*First Citizen"))
    settled(page)
    open_bar(page)
    page.get_by_text("King Richard", exact=True).click()
    expect(line).to_contain_text("KING RICHARD")
    page.keyboard.press("Escape")
    open_fold(page, "In words")
    expect(page).to_have_url(re.compile("words=true"))
    page.reload()
    expect(page.get_by_text("What you see")).to_be_visible()
    page.get_by_text("Norms", exact=True).click()
    expect(page).to_have_url(re.compile("residual_view=norms"))
    expect(page).not_to_have_url(re.compile("words=true"))
    expect(page.get_by_text("What you see")).to_have_count(0)
