"""The Parameters page in a real browser: the areas stay where they are while a field moves, and one can go into them."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import settled
from tests.browser.visit import opened

SLOW = 30_000


def test_a_field_moves_and_the_areas_follow_in_place(page: Page, app_url: str) -> None:
    opened(page, f"{app_url}/parameters?parameters_model=mini", ".gf-figure .treemaplayer .slice")
    expect(page.get_by_text("818,048 parameters")).to_be_visible(timeout=SLOW)
    page.evaluate("window.__figures = [...document.querySelectorAll('.gf-figure')]")

    page.get_by_text("Change any field").click()
    layers = page.get_by_role("slider", name="Layers")
    layers.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("new URL(location).searchParams.get('parameters_n_layers') === '5'", timeout=SLOW)
    page.keyboard.press("Escape")  # the fields lie over the figure
    expect(page.get_by_text("1,016,320 parameters")).to_be_visible(timeout=SLOW)
    settled(page, SLOW)
    page.wait_for_function(
        "document.querySelector('.gf-figure')._fullData[0].values[0] === 1016320", timeout=SLOW
    )
    assert page.evaluate("window.__figures.every((f) => f.isConnected)")

    areas = page.locator(".gf-figure").first
    before = areas.locator(".slice").count()
    areas.locator(".slice").filter(has_text="attention").last.click(force=True)
    page.wait_for_function(
        "(n) => document.querySelectorAll('.gf-figure .treemaplayer .slice').length < n",
        arg=before,
        timeout=SLOW,
    )
