"""The beam's tree in a real Chromium: it is drawn, a slider changes it in its place, a link brings it back, a
phone holds it.
"""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import settled

FIGURE = ".st-key-beam_tree .gf-plot"
NODES = f"""() => {{
  const plot = document.querySelector('{FIGURE} .js-plotly-plot') ?? document.querySelector('{FIGURE}.js-plotly-plot')
  return plot ? Object.fromEntries(plot.data.filter((t) => t.name).map((t) => [t.name, (t.x._inputArray ?? t.x).length])) : null }}"""


def opened(page, url, **query):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(
        f"{url}/generation?generation_view=Beam+search&" + "&".join(f"{k}={v}" for k, v in query.items())
    )
    page.wait_for_selector(f"{FIGURE} svg.main-svg", timeout=90_000)
    settled(page)
    return problems


def nodes(page):
    return page.evaluate(NODES)


def test_the_width_changes_the_tree_in_its_place_and_stands_in_the_link(page, app_url):
    problems = opened(page, app_url, beam_width=2, beam_depth=5)
    first = nodes(page)
    assert first["winner"] == 5 and first["kept"] + first["winner"] == 2 * 5
    page.evaluate(f"window.tree = document.querySelector('{FIGURE} svg.main-svg')")
    page.get_by_role("slider", name="Width").press("ArrowRight")
    page.wait_for_function(
        f"() => {{ const found = ({NODES})(); return found && found.kept + found.winner === 15 }}"
    )
    assert page.evaluate("window.tree.isConnected")
    expect(page).to_have_url(re.compile("beam_width=3"))
    settled(page)
    second = nodes(page)
    page.reload()
    page.wait_for_selector(f"{FIGURE} svg.main-svg", timeout=90_000)
    settled(page)
    assert nodes(page) == second and problems == []


def test_a_phone_holds_it(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    problems = opened(page, app_url, beam_width=5, beam_depth=11)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    inner, outer = page.evaluate(
        "(() => { const box = document.querySelector('.st-key-beam_figure'); return [box.scrollWidth,"
        " box.clientWidth] })()"
    )
    assert inner > outer  # the tree scrolls in its own box
    assert problems == []
