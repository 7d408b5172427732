"""Walking the forward pass in a real Chromium."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import open_fold, settled


def open_shapes(page, url, query="?shapes_step=0"):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}/shapes{query}")
    page.wait_for_selector(".gf-walk .gf-step.gf-now", timeout=60_000)
    settled(page)
    return problems


def test_walking_with_the_keyboard_moves_everything(page, app_url):
    problems = open_shapes(page, app_url)
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
    assert problems == []


def test_folded_blocks_open_and_a_link_reproduces_the_step(page, app_url):
    open_shapes(page, app_url)
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
    open_shapes(page, app_url, link)
    expect(page.locator(".gf-card-title code")).to_have_text("blocks.3.norm1")


def test_playing_walks_and_stops(page, app_url):
    open_shapes(page, app_url, "?shapes_source=llama2-70b&shapes_step=0")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".gf-card-title code")).to_have_text("embed")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".gf-walk-list")).to_contain_text("Blocks 1–79: the same")


def test_a_phone_scrolls_down_only(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    open_shapes(page, app_url, "?shapes_source=llama2-70b&shapes_step=8")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(
        "(() => { const l = document.querySelector('.gf-walk-list'); return l.scrollWidth <= l.clientWidth +"
        " 1 })()"
    )
