"""Predict, then see, in a browser: from the question to the figure, by mouse and by keys; and how to be left alone."""

import pytest

from tests.browser import visit
from tests.browser.conftest import settled

SCALING = "attention?attention_view=scores"
STRIP = ".gf-guess-strip:not([hidden])"
PILL = ".gf-guess-pill"
LINE = "document.querySelector('.st-key-question_line')"
DRAWN_ANEW = f"() => {LINE}.prepend({LINE}.querySelector('.gf-guess-pill'))"  # what Streamlit puts behind it
ORDER = (
    f"""() => ['h2', '.gf-guess-pill'].map((one) => {LINE}.querySelector(one).getBoundingClientRect().left)"""
)
BOTTOMS = """() => [...document.querySelectorAll('.st-key-answer, .gf-figure')]
  .map(e => Math.round(e.getBoundingClientRect().bottom))"""


def opened(page, app_url: str, where: str = SCALING) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    visit.opened(page, f"{app_url}/{where}")


def test_a_guess_from_the_question_to_the_figure(page, app_url) -> None:
    opened(page, app_url)
    page.wait_for_selector(PILL)
    page.evaluate(DRAWN_ANEW)
    assert page.evaluate(ORDER) == sorted(page.evaluate(ORDER)), "the button stands left of the question"
    before = page.evaluate(BOTTOMS)
    page.click(PILL)
    page.wait_for_selector(STRIP)
    assert "64 to 4" in page.inner_text(".gf-guess-said")
    assert page.evaluate("document.activeElement.className") == "gf-guess-said", "read aloud, and Tab goes on"
    assert page.evaluate(BOTTOMS) == before, "nothing moves for it"
    page.get_by_role("button", name="One key takes even more").click()
    page.wait_for_function("new URL(location.href).searchParams.get('attention_dk') === '4'")
    said = page.inner_text(".gf-guess-said")
    assert said.startswith("Not quite.") and "The answer: The weights become more even." in said
    assert "100% to 19%" in said and "23% to 12%" in said
    settled(page)
    page.locator(".st-key-answer", has_text="18.9%").wait_for()  # the figure did it
    page.get_by_role("button", name="Close", exact=True).click()
    assert page.locator(STRIP).count() == 0 and page.locator(PILL).count() == 1
    page.locator(PILL).focus()  # and by keys alone
    page.keyboard.press("Enter")
    page.wait_for_selector(STRIP)
    page.keyboard.press("Escape")
    assert page.locator(STRIP).count() == 0
    assert page.evaluate("document.activeElement.className") == "gf-guess-pill"
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Not now").click()
    assert page.locator(PILL).count() == page.locator(STRIP).count() == 0
    opened(page, app_url)
    assert page.locator(PILL).count() == 0, "kept for this tab"


@visit.needs_axe
@pytest.mark.exhaustive
def test_nothing_is_wrong_with_it_for_a_reader_of_screens(page, app_url) -> None:
    opened(page, app_url)
    page.click(PILL)
    page.wait_for_selector(STRIP)
    assert visit.violations(page) == []
    visit.shown_in(page, "dark")
    assert visit.violations(page, "color-contrast") == []
