"""Patching in a real Chromium: a pair is chosen, a prompt of one's own is typed, and a map is drawn each time."""

from playwright.sync_api import expect

from tests.browser.visit import opened


def test_a_prompt_of_ones_own_is_patched(page, app_url):
    opened(
        page, f"{app_url}/circuits?circuits_view=patching&model=shakespeare-classic", ".gf-figure .main-svg"
    )
    ticks = page.locator(".gf-figure .xtick text")
    expect(ticks).to_have_text(["t", "h", "oe", "uy", "␣", "a", "r"])
    page.get_by_role("radio", name="heads").click()
    expect(ticks).to_have_text(["0", "1", "2", "3"])
    page.get_by_role("radio", name="stream").click()
    page.get_by_role("radio", name="your own").click()
    box = page.get_by_label("Second prompt", exact=True)
    box.fill("thee ar")
    box.press("Enter")
    expect(ticks).to_have_text(["t", "h", "oe", "ue", "␣", "a", "r"])
    box.fill("thee are")
    box.press("Enter")
    expect(page.get_by_text("has 7 tokens and the second 8")).to_be_visible()
    assert "patching_second_prompt=thee+are" in page.url
