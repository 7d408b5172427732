"""Look inside, in a real Chromium: a click on a cell chooses, the keyboard walks, pictures stay where they are."""

import re

from playwright.sync_api import Page, expect

from tests.browser import visit
from tests.browser.conftest import open_fold, settled
from tests.browser.visit import opened

AT = """([figure, row, column]) => {
  const plot = document.querySelectorAll('.gf-figure')[figure], { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect()
  return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)]
}"""


def test_a_click_on_a_cell_chooses_its_neuron(page: Page, app_url: str):
    visit.opened(page, f"{app_url}/feedforward?feedforward_layer=1&feedforward_neuron=5&measure=true")
    expect(page.get_by_role("heading", name="Neuron 5 of block 1 on this text")).to_be_visible()
    page.wait_for_function(
        "(all => all.length === 5 && all.every((f) => f._fullLayout))([...document.querySelectorAll('.gf-figure')])"
    )
    settled(page)
    page.evaluate("window.__figures = [...document.querySelectorAll('.gf-figure')]")

    page.locator(".gf-figure").nth(3).scroll_into_view_if_needed()
    settled(page)
    page.mouse.click(*page.evaluate(AT, [3, 2, 100]))  # the overview: layer 2, about neuron 100
    page.wait_for_function(
        "new URL(location).searchParams.get('feedforward_layer') === '2' &&"
        " !/neuron=5(&|$)/.test(location.search)"
    )
    neuron = int(re.search(r"feedforward_neuron=(\d+)", page.url)[1])
    assert abs(neuron - 100) <= 2
    expect(page.get_by_role("heading", name=f"Neuron {neuron} of block 2 on this text")).to_be_visible()
    settled(page)

    assert page.evaluate("window.__figures.every((f) => f.isConnected)")


NOW = ".gf-walk .gf-step.gf-now"


def test_walking_with_the_keyboard_moves_everything(page, app_url):
    opened(page, f"{app_url}/shapes?shapes_step=0", NOW)
    page.wait_for_selector(".gf-walk-list")
    steps = page.get_by_role("listbox", name="Steps of the forward pass")
    steps.focus()
    for _ in range(5):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".gf-card-title code")).to_have_text("blocks.0.norm1")
    expect(page.locator(".gf-step.gf-now code")).to_have_text("norm1")
    expect(page.locator(".gf-station.gf-now")).to_have_text("norm")
    expect(page).to_have_url(re.compile(r"shapes_step=5(&|$)"))
    open_fold(page, "By hand")
    expect(page.locator(".gf-source .gf-ran")).to_contain_text("F.layer_norm")
    figure = page.locator(".gf-figure")
    expect(figure).to_have_attribute("aria-label", re.compile(r"blocks\.0\.norm1"))
    node = figure.element_handle()
    page.get_by_role("button", name="Next step").click()
    expect(figure).to_have_attribute("aria-label", re.compile(r"blocks\.0\.qkv_flat"))
    assert node.evaluate("(n) => n.isConnected")  # drawn in place
    page.get_by_role("combobox", name="Trace").click()
    page.get_by_role("option", name="GPT-2 small").click()
    expect(page.locator(".gf-card-shapes")).to_contain_text("2,304")  # the same step of the other model
    expect(page.locator(".gf-card-title code")).to_have_text("blocks.0.qkv_flat")
    page.get_by_role("button", name="Next step").click()
    expect(page.locator(".gf-card-title code")).to_have_text("blocks.0.qkv_heads")
    expect(page.locator(".gf-source .gf-ran").last).to_contain_text("split")
    expect(page).to_have_url(re.compile(r"shapes_step=7(&|$)"))
