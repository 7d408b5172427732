"""BPE, watched, in a real Chromium: it plays without asking the server, goes back and forth, and is in the link."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.visit import opened

# Counts how often the script ran, and whether the player's nodes were ever taken out.
WATCH = """() => {
  window.runs = 0
  window.player = document.querySelector('.gf-bpe')
  new MutationObserver((changes) => changes.forEach((change) => {
    if (change.target.dataset.testScriptState === 'running') window.runs++
  })).observe(document.querySelector('[data-testid="stApp"]'), { attributes: true, attributeFilter: ['data-test-script-state'] })
}"""


def watched(page, app_url, query: str = "") -> None:
    opened(page, f"{app_url}/tokens?tokens_view=BPE%2C+watched&{query}", ".gf-bpe-now b")


def now(page) -> str:
    return page.locator(".gf-bpe-now").inner_text()


def at(page) -> int:
    return int(re.search(r"Merge ([\d,]+) of", now(page))[1].replace(",", "")) - 1


def press(page, name: str) -> None:
    page.locator(".gf-bpe").get_by_role("button", name=name, exact=True).click()


def test_it_plays_in_the_browser_and_tells_the_link_when_it_rests(page, app_url):
    watched(page, app_url)
    page.evaluate(WATCH)
    page.locator("[data-is=speed]").select_option("15")
    press(page, "Play")
    page.wait_for_function("Number(document.querySelector('.gf-bpe input').value) >= 6")
    assert page.evaluate("window.runs") == 0  # not a word to the server meanwhile
    press(page, "Pause")
    here = at(page)
    page.wait_for_function(f"new URL(location).searchParams.get('bpe_step') === '{here}'")
    settled(page)
    assert page.evaluate("window.player.isConnected") and at(page) == here
    press(page, "One merge back, −1")
    assert at(page) == here - 1
    press(page, "To the last merge")
    assert at(page) == 32 and page.locator("[data-do=next]").is_disabled()
    press(page, "Play")  # from the end it starts anew
    page.wait_for_function("Number(document.querySelector('.gf-bpe input').value) < 30")
    page.wait_for_function(
        "document.querySelector('.gf-bpe-play').ariaLabel === 'Play'"
    )  # and stops at the end
    assert at(page) == 32


def test_before_and_after_are_what_the_merge_says_and_a_token_shows_its_tree(page, app_url):
    watched(page, app_url, "bpe_step=0")
    first = page.locator("[data-is=panel0] .gf-bpe-t:not(.gf-bpe-off)")
    assert "".join(first.all_text_contents()).startswith("She␣sells␣sea")
    expect(page.locator("[data-is=before]")).to_have_text("Before: 183 tokens")
    expect(page.locator("[data-is=after]")).to_have_text("Now 161 tokens; at the end 48")  # 22 times ␣s
    assert page.locator("[data-is=panel1] .gf-bpe-hot").count() == 22
    assert page.locator("[data-is=panel0] .gf-bpe-hot").count() == 44
    assert set(page.locator("[data-is=panel1] .gf-bpe-hot").all_text_contents()) == {"␣s"}
    press(page, "One merge forward, +1")
    expect(page.locator("[data-is=before]")).to_have_text("Before: 161 tokens")
    assert page.locator(".gf-bpe-pair").count() == 6
    press(page, "To the last merge")
    expect(page.locator("[data-is=after]")).to_have_text("Now 48 tokens; at the end 48")
    shown = "".join(page.locator("[data-is=panel1] .gf-bpe-t:not(.gf-bpe-off)").all_text_contents())
    assert shown.startswith("She␣sells␣sea␣shells␣by␣the␣sea␣shore.⏎The␣shells")

    # A token is clicked, and shows how it was built.
    page.locator("input[type=range]").fill("5")
    expect(page.locator(".gf-bpe-tree")).to_be_hidden()
    page.locator("[data-is=panel1] .gf-bpe-t", has_text=re.compile("^lls$")).first.click()
    expect(page.locator(".gf-bpe-tree")).to_be_visible()
    assert page.locator(".gf-bpe-tree .gf-bpe-chip b").first.inner_text() == "lls"
    page.wait_for_function("new URL(location).searchParams.has('bpe_token')")
    page.locator(".gf-bpe-tree .gf-bpe-chip:not(.gf-bpe-made)").first.click()
    expect(page.locator("[data-is=treetitle]")).to_have_text("This token is a starting symbol")
