"""Who cannot see well, or uses no mouse: what axe-core finds, in light and in dark, and the way of the keyboard.

axe-core comes with the other packages of npm (package.json). What it finds in Streamlit's own frame is named below, with
the reason; everything else is ours.
"""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import open_fold, settled
from tests.browser.server import ROOT
from tests.browser.test_one_screen import VIEWS, choose
from ui.site import ENTRIES

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed (npm ci brings it)")

# (rule, what the element's HTML holds): Streamlit 1.67's own, which no page of ours can change.
STREAMLITS = (
    ("list", "stSidebarNavItems"),  # sections stand between the list and its items
    ("listitem", "<li"),  # the same, seen from the items
    ("empty-table-header", "<th"),  # of the column of row names in its tables
    ("scrollable-region-focusable", "stDataFrame"),  # it has its own canvas and keys
    ("scrollable-region-focusable", '<pre class="st-emotion'),  # of its code; the button copies it whole
    ("aria-allowed-attr", "stExpander"),
    ("region", "stToast"),
)
# What Streamlit fades while a script runs; a page may draw a part of itself again at any time.
FADES = """[data-stale="true"], [data-testid="stExpander"] summary > div
    { opacity: 1 !important; transition: none !important }"""
AT_REST = """() => !document.querySelector('[data-stale="true"]') && document.getAnimations().every((one) =>
  one.playState !== 'running' || one.effect?.getComputedTiming().endTime === Infinity)"""
FIND = """(only) => axe.run({ exclude: ['pre code > span:nth-child(n+80)'] }, { ...(only ? { runOnly: only } : {}), rules: only ? {} : { 'target-size': { enabled: true } }, resultTypes: ['violations'] }).then((found) =>
  found.violations.flatMap(({ id, nodes }) => nodes.map((node) => [id, node.html.slice(0, 300), node.failureSummary.slice(0, 400)])))"""


def ready(page, address: str) -> None:
    page.goto(address)
    settled(page, 60_000)
    page.locator(".gf-terms button").first.wait_for(state="attached")


def violations(page, only: str | None = None) -> list[tuple[str, str, str]]:
    """(rule, element, what would help) of what is ours; of one rule `only`, or of all."""
    settled(page)
    page.wait_for_function(AT_REST)
    page.add_style_tag(content=FADES)
    page.add_script_tag(path=str(AXE))
    return [
        (rule, html, help_)
        for rule, html, help_ in page.evaluate(FIND, only)
        if not any(rule == name and part in html for name, part in STREAMLITS)
    ]


@needs_axe
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.url or "home")
def test_nothing_of_ours_is_in_the_way(page, app_url, entry):
    """Every view, with what is folded below it opened, in light and in dark."""
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="light")
    ready(page, f"{app_url}/{entry.url}")
    views, found = page.locator(VIEWS), {}
    for view in range(max(1, views.count())):
        chosen = choose(page, view) if entry.url else "the map"
        unfold(page)
        for scheme in ("light", "dark"):
            shown_in(page, scheme)
            # What else axe asks does not depend on colours.
            found[chosen, scheme] = violations(page, "color-contrast" if scheme == "dark" else None)
        shown_in(page, "light")
    assert not any(found.values()), "\n".join(f"{at}: {some}" for at, some in found.items() if some)


def unfold(page) -> None:
    page.locator(".st-key-answer, .map").first.wait_for(timeout=60_000)
    for name in ("Measure it", "By hand"):
        if page.locator('[data-testid="stExpander"] summary', has_text=name).count():
            open_fold(page, name)
    page.wait_for_timeout(300)  # figures are drawn after the script has run


def shown_in(page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(
        "scheme => getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).colorScheme === scheme",
        arg=scheme,
    )
    page.wait_for_timeout(300)  # colours fade from the one to the other


def test_every_page_has_a_title_of_its_own_and_its_headings_are_in_order(page, app_url):
    titles = set()
    for url in ("", "attention", "sampling"):
        ready(page, f"{app_url}/{url}")
        titles.add(page.title())
        levels = page.locator("h1:visible, h2:visible, h3:visible, h4:visible").evaluate_all(
            "(all) => all.map((h) => Number(h.tagName[1]))"
        )
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    assert titles == {"Glassformer", "Attention · Glassformer", "Sampling · Glassformer"}


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


def a_term(page):
    """A dotted term of the page, brought into view."""
    term = page.locator('[data-testid="stMain"] a[href^="#term-"]:visible').first
    term.scroll_into_view_if_needed()
    return term


def test_a_term_is_explained_to_pointer_and_keyboard(page, app_url):
    ready(page, f"{app_url}/sampling?words=true")
    card, term = page.locator(".gf-term-card"), a_term(page)
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


def test_a_term_leads_to_its_page_without_a_new_load(page, app_url):
    ready(page, f"{app_url}/sampling")
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


def test_a_link_may_point_at_any_part_or_none(page, app_url):
    for part, chosen in (("unembedding", "unembedding"), ("constructor", "attention")):
        page.goto(f"{app_url}/?part={part}")
        expect(page.locator(".gf-live-card")).to_have_attribute("data-part", chosen)
        page.goto(f"{app_url}/?part={part}&home_view=published")
        drawn = chosen if chosen == part else "block"
        expect(page.locator(".map .box.chosen")).to_have_attribute("data-part", drawn)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.url or "home")
def test_no_page_scrolls_sideways_on_a_phone(page, app_url, entry):
    page.set_viewport_size({"width": 390, "height": 844})
    ready(page, f"{app_url}/{entry.url}")
    wide = page.evaluate(
        """() => { const main = document.querySelector('[data-testid="stMain"]')
          return [main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth] }"""
    )
    assert wide == [0, 0]
