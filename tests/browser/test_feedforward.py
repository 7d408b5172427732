"""The feed-forward page in a real browser: a neuron is chosen by pointing at it, and the pictures stay where
they are.
"""

import re

from playwright.sync_api import Page, expect

from tests.browser import visit
from tests.browser.conftest import settled
from tests.browser.training import SLOW

AT = """([figure, row, column]) => {
  const plot = document.querySelectorAll('.gf-figure')[figure], { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect()
  return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)]
}"""


def test_a_click_on_a_cell_chooses_its_neuron(page: Page, app_url: str):
    visit.opened(page, f"{app_url}/feedforward?feedforward_layer=1&feedforward_neuron=5&measure=true")
    expect(page.get_by_role("heading", name="Neuron 5 of layer 1 on this text")).to_be_visible(timeout=SLOW)
    page.wait_for_function(
        "(all => all.length === 5 && all.every((f) => f._fullLayout))([...document.querySelectorAll('.gf-figure')])",
        timeout=SLOW,
    )
    settled(page, SLOW)
    page.evaluate("window.__figures = [...document.querySelectorAll('.gf-figure')]")

    page.locator(".gf-figure").nth(3).scroll_into_view_if_needed()
    settled(page)
    page.mouse.click(*page.evaluate(AT, [3, 2, 100]))  # the overview: layer 2, about neuron 100
    page.wait_for_function(
        "new URL(location).searchParams.get('feedforward_layer') === '2' &&"
        " !/neuron=5(&|$)/.test(location.search)",
        timeout=SLOW,
    )
    neuron = int(re.search(r"feedforward_neuron=(\d+)", page.url)[1])
    assert abs(neuron - 100) <= 2
    expect(page.get_by_role("heading", name=f"Neuron {neuron} of layer 2 on this text")).to_be_visible(
        timeout=SLOW
    )
    settled(page, SLOW)

    row = page.evaluate("document.querySelectorAll('.gf-figure')[2]._fullLayout.yaxis._categories[3]")
    figure = page.locator(".gf-figure").nth(2)
    figure.scroll_into_view_if_needed()
    settled(page)
    page.mouse.click(*page.evaluate(AT, [2, 3, 10]))  # the layer: its fourth row
    page.wait_for_function(
        "row => new URL(location).searchParams.get('feedforward_neuron') === row", arg=row, timeout=SLOW
    )
    expect(page.get_by_role("heading", name=f"Neuron {row} of layer 2 on this text")).to_be_visible(
        timeout=SLOW
    )
    assert page.evaluate("window.__figures.every((f) => f.isConnected)")
