"""The attention page in a real Chromium: a head is chosen from the grid, and arcs answer in the browser."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import after_frames
from tests.browser.visit import opened


def test_a_click_or_a_key_enlarges_a_head_on_the_same_node_and_marks_a_cell(page, app_url):
    opened(page, f"{app_url}/attention?attention_sort=layer", ".gf-heads-canvas")
    page.evaluate(
        "window.drawing = document.querySelector('.gf-heads-canvas'); window.small ="
        " document.querySelector('.gf-head canvas')"
    )
    head, large = page.locator(".gf-head").nth(6), page.locator(".gf-heads-canvas")
    said = page.locator(".gf-heads-said")
    before = said.inner_text()
    head.hover()
    expect(said).to_contain_text("Head 1.2")
    assert "attention_head=2" not in page.url, "hover previews"
    page.mouse.move(2, 2)
    expect(said).to_have_text(before)
    head.click()
    expect(large).to_have_attribute("aria-label", re.compile("Head 1.2"))
    expect(page).to_have_url(
        re.compile(r"attention_layer=1.*attention_head=2|attention_head=2.*attention_layer=1")
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(large).to_have_attribute("aria-label", re.compile("Head 2.2"))
    expect(head).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("window.drawing.isConnected && window.small.isConnected")
    cell = page.locator(".gf-heads-pair")
    expect(cell).to_contain_text(re.compile("attends to .* at position"))
    first = cell.inner_text()
    large.click(position={"x": 110, "y": 200})  # among the cells
    expect(cell).not_to_have_text(first)
    marked = cell.inner_text()
    page.mouse.move(2, 2)
    expect(cell).to_have_text(marked)
    page.keyboard.press("ArrowDown")
    expect(cell).not_to_have_text(marked)
    assert page.locator(".gf-heads-looking").count() == 1


def test_arcs_answer_to_pointer_keys_and_chips_without_the_server(page, app_url):
    opened(
        page,
        f"{app_url}/attention?measure=true&attention_as=Arcs&attention_layer=1&attention_head=0",
        ".gf-arcs-token",
    )
    said, left = page.locator(".gf-arcs-said"), page.locator(".gf-arcs-column").first
    page.evaluate("""() => { // the script must not run again while the page is only pointed at
      window.runs = 0
      const app = document.querySelector('[data-testid="stApp"]')
      new MutationObserver(() => { if (app.dataset.testScriptState === 'running') window.runs++ }).observe(app, { attributes: true })
    }""")
    token = left.locator(".gf-arcs-token").nth(20)

    def point(words):
        """On a busy machine the page may still move below the pointer: then it is put there again."""
        for _ in range(5):
            token.hover()
            if said.inner_text().find("at position 20 attends to head") >= 0:
                break
            after_frames(page)
        expect(said).to_contain_text(words)

    point(re.compile(r"at position 20 attends to head 0: .* 0\.\d{3}"))
    picture = "() => document.querySelector('.gf-arcs canvas').toDataURL()"
    one = page.evaluate(picture)
    page.locator(".gf-arcs-chip").nth(2).click()
    point("head 2:")
    assert page.evaluate(picture) != one
    left.focus()
    # The rows scroll below the pointer, which stays where it is: the key's choice must last all the same.
    page.keyboard.press("End")
    after_frames(page)
    expect(said).to_contain_text(f"at position {left.locator('.gf-arcs-token').count() - 1} attends to")
    page.keyboard.press("Home")
    after_frames(page)
    expect(said).to_contain_text("at position 0 attends to head 0: “F” at 0 1.000")
    page.keyboard.press("ArrowDown")
    expect(said).to_contain_text("at position 1 attends to")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("is attended to by")
    assert page.evaluate("window.runs") == 0
