"""The attention page in a real Chromium: a head is chosen from the grid, and arcs answer in the browser."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import after_frames, reruns, settled
from tests.browser.visit import linked

READS = "model=shakespeare-classic&text=First+Citizen%3A%0ABefore+we+proceed+any+further%2C+hear+me+speak.%0A"

# The second head is chosen while the server is at work on the answer to the first.
IN_HASTE = """([first, second]) => {
  const all = [...document.querySelectorAll('.gf-head')], app = document.querySelector('[data-testid="stApp"]')
  window.chosen = []
  new MutationObserver(() => {
    const now = all.findIndex((head) => head.getAttribute('aria-pressed') === 'true')
    if (now !== chosen.at(-1)) chosen.push(now)
  }).observe(document.querySelector('.gf-heads-grid'), { subtree: true, attributeFilter: ['aria-pressed'] })
  let late = 0
  const next = () => {
    clearTimeout(late)
    work.disconnect()
    all[second].click()
  }
  const work = new MutationObserver(next)
  work.observe(app, { attributeFilter: ['data-test-script-state'] })
  late = setTimeout(next, 2000) // a server may begin and end within one frame, and is then never seen at work
  all[first].click()
}"""


def test_a_click_or_a_key_enlarges_a_head_on_the_same_node_and_marks_a_cell(tab, app_url):
    linked(tab, f"{app_url}/attention?{READS}&attention_sort=layer", ".gf-heads-canvas")
    head, large = tab.locator(".gf-head").nth(6), tab.locator(".gf-heads-canvas")
    nodes = [large.element_handle(), tab.locator(".gf-head canvas").first.element_handle()]
    said = tab.locator(".gf-heads-said")
    before = said.inner_text()
    head.hover()
    expect(said).to_contain_text("Head 1.2")
    assert "attention_head=2" not in tab.url, "hover previews"
    tab.mouse.move(2, 2)
    expect(said).to_have_text(before)
    head.click()
    expect(large).to_have_attribute("aria-label", re.compile("Head 1.2"))
    expect(tab).to_have_url(re.compile(r"(?=.*attention_layer=1).*attention_head=2"))
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(large).to_have_attribute("aria-label", re.compile("Head 2.2"))
    expect(head).to_have_attribute("aria-pressed", "false")
    assert all(node.evaluate("node => node.isConnected") for node in nodes)
    # The answer brings the exact weights.
    expect(tab).to_have_url(re.compile(r"attention_layer=2"))
    settled(tab)
    cell = tab.locator(".gf-heads-pair")
    expect(cell).to_contain_text(re.compile("attends to .* at position"))
    first = cell.inner_text()
    large.click(position={"x": 110, "y": 200})  # among the cells
    expect(cell).not_to_have_text(first)
    marked = cell.inner_text()
    tab.mouse.move(2, 2)
    expect(cell).to_have_text(marked)
    tab.keyboard.press("ArrowDown")
    expect(cell).not_to_have_text(marked)
    assert tab.locator(".gf-heads-looking").count() == 1
    tab.evaluate(IN_HASTE, [3, 9])
    expect(tab).to_have_url(re.compile(r"(?=.*attention_layer=2).*attention_head=1"))
    settled(tab)
    assert tab.evaluate("chosen") == [3, 9], "the answer to the first choice put its head back"


def test_arcs_answer_to_pointer_keys_and_chips_without_the_server(tab, app_url):
    address = f"attention?{READS}&measure=true&attention_as=Arcs&attention_layer=1&attention_head=0"
    linked(tab, f"{app_url}/{address}", ".gf-arcs-token")
    said, left = tab.locator(".gf-arcs-said"), tab.locator(".gf-arcs-column").first
    token, before = left.locator(".gf-arcs-token").nth(20), reruns(tab)

    def point(words):
        """On a busy machine the page may still move below the pointer: then it is put there again."""
        for _ in range(5):
            token.hover()
            if said.inner_text().find("at position 20 attends to head") >= 0:
                break
            after_frames(tab)
        expect(said).to_contain_text(words)

    point(re.compile(r"at position 20 attends to head 0: .* 0\.\d{3}"))
    picture = "() => document.querySelector('.gf-arcs canvas').toDataURL()"
    one = tab.evaluate(picture)
    tab.locator(".gf-arcs-chip").nth(2).click()
    point("head 2:")
    assert tab.evaluate(picture) != one
    left.focus()
    # The rows scroll below the pointer, which stays where it is: the key's choice must last all the same.
    tab.keyboard.press("End")
    after_frames(tab)
    expect(said).to_contain_text(f"at position {left.locator('.gf-arcs-token').count() - 1} attends to")
    tab.keyboard.press("Home")
    after_frames(tab)
    expect(said).to_contain_text("at position 0 attends to head 0: “F” at 0 1.000")
    tab.keyboard.press("ArrowDown")
    expect(said).to_contain_text("at position 1 attends to")
    tab.keyboard.press("ArrowRight")
    expect(said).to_contain_text("is attended to by")
    assert reruns(tab) == before
