"""The beam's tree in a real Chromium: a slider changes it in its place, and a link brings it back."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.visit import opened

FIGURE = ".st-key-beam_tree .gf-plot"
NODES = f"""() => {{
  const plot = document.querySelector('{FIGURE} .js-plotly-plot') ?? document.querySelector('{FIGURE}.js-plotly-plot')
  return plot ? Object.fromEntries(plot.data.filter((t) => t.name).map((t) => [t.name, (t.x._inputArray ?? t.x).length])) : null }}"""


def test_the_width_changes_the_tree_in_its_place_and_stands_in_the_link(page, app_url):
    figure = f"{FIGURE} svg.main-svg"
    opened(page, f"{app_url}/generation?generation_view=Beam+search&beam_width=2&beam_depth=5", figure)
    first = page.evaluate(NODES)
    assert first["winner"] == 5 and first["kept"] + first["winner"] == 2 * 5
    page.evaluate(f"window.tree = document.querySelector('{FIGURE} svg.main-svg')")
    page.get_by_role("slider", name="Width").press("ArrowRight")
    page.wait_for_function(
        f"() => {{ const found = ({NODES})(); return found && found.kept + found.winner === 15 }}"
    )
    assert page.evaluate("window.tree.isConnected")
    expect(page).to_have_url(re.compile("beam_width=3"))
    settled(page)
    second = page.evaluate(NODES)
    page.reload()
    page.wait_for_selector(figure)
    settled(page)
    assert page.evaluate(NODES) == second
