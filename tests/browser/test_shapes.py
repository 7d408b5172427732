"""Walking the forward pass in a real Chromium."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import open_fold
from tests.browser.visit import opened

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
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".gf-card-title code")).not_to_have_text("blocks.0.qkv_heads")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_folded_blocks_open_and_a_link_reproduces_the_step(page, app_url):
    opened(page, f"{app_url}/shapes?shapes_step=0", NOW)
    group = page.get_by_role("option", name="Blocks 1–3: the same")
    before = page.locator(".gf-walk-bar output").inner_text()
    group.click()
    expect(group).to_contain_text("▾")
    assert page.locator(".gf-walk-bar output").inner_text() != before
    page.get_by_role("option", name="Block 3").click()
    expect(page.locator(".gf-card-title code")).to_have_text("blocks.3.norm1")
    expect(page.locator(".gf-card-shapes")).to_contain_text("resid_post")
    expect(page).to_have_url(re.compile(r"shapes_step=59(&|$)"))  # 5 of the input, 18 in each block
    link = page.url.partition("/shapes")[2]
    opened(page, f"{app_url}/shapes{link}", NOW)
    expect(page.locator(".gf-card-title code")).to_have_text("blocks.3.norm1")
