"""BPE, watched, in a real Chromium: it plays without asking the server, goes back and forth, and is in the link."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import reruns, settled
from tests.browser.visit import linked


def at(page) -> int:
    return int(re.search(r"Merge (\d+) of", page.locator(".gf-bpe-now").inner_text())[1]) - 1


def press(page, name: str) -> None:
    page.locator(".gf-bpe").get_by_role("button", name=name, exact=True).click()


def test_merges_are_shown_before_and_after_and_play_without_the_server(tab, app_url):
    linked(tab, f"{app_url}/tokens?tokens_view=bpe&bpe_step=0", ".gf-bpe-now b")
    player = tab.locator(".gf-bpe").element_handle()
    first = tab.locator("[data-is=panel0] .gf-bpe-t:not(.gf-bpe-off)")
    assert "".join(first.all_text_contents()).startswith("She␣sells␣sea")
    expect(tab.locator("[data-is=before]")).to_have_text("Before: 183 tokens")
    expect(tab.locator("[data-is=after]")).to_have_text("Now 161 tokens; at the end 48")  # 22 times ␣s
    assert tab.locator("[data-is=panel1] .gf-bpe-hot").count() == 22
    assert tab.locator("[data-is=panel0] .gf-bpe-hot").count() == 44
    assert set(tab.locator("[data-is=panel1] .gf-bpe-hot").all_text_contents()) == {"␣s"}
    press(tab, "One merge forward")
    expect(tab.locator("[data-is=before]")).to_have_text("Before: 161 tokens")
    assert tab.locator(".gf-bpe-pair").count() == 6
    press(tab, "To the last merge")
    expect(tab.locator("[data-is=after]")).to_have_text("Now 48 tokens; at the end 48")
    assert at(tab) == 32 and tab.locator("[data-do=next]").is_disabled()
    shown = "".join(tab.locator("[data-is=panel1] .gf-bpe-t:not(.gf-bpe-off)").all_text_contents())
    assert shown.startswith("She␣sells␣sea␣shells␣by␣the␣sea␣shore.⏎The␣shells")

    # From the end it plays from the beginning, and asks nothing of the server until it rests.
    tab.wait_for_function("new URL(location).searchParams.get('bpe_step') === '32'")
    settled(tab)
    before = reruns(tab)
    tab.locator(".gf-steps-speed select").select_option("5")
    press(tab, "Play")
    tab.wait_for_function("(at => at >= 6 && at < 30)(Number(document.querySelector('.gf-bpe input').value))")
    assert reruns(tab) == before
    press(tab, "Pause")
    here = at(tab)
    tab.wait_for_function(f"new URL(location).searchParams.get('bpe_step') === '{here}'")
    settled(tab)
    assert player.evaluate("node => node.isConnected") and at(tab) == here
    press(tab, "One merge back")
    assert at(tab) == here - 1
    tab.locator("input[type=range]").fill("28")
    press(tab, "Play")
    expect(tab.locator(".gf-bpe-now")).to_contain_text("Merge 33 of")
    tab.wait_for_function(
        "document.querySelector('.gf-bpe [data-do=play]').ariaLabel === 'Play'"
    )  # and it stops

    # A token is clicked, and shows how it was built.
    tab.locator("input[type=range]").fill("5")
    expect(tab.locator(".gf-bpe-tree")).to_be_hidden()
    tab.locator("[data-is=panel1] .gf-bpe-t", has_text=re.compile("^lls$")).first.click()
    expect(tab.locator(".gf-bpe-tree")).to_be_visible()
    assert tab.locator(".gf-bpe-tree .gf-bpe-chip b").first.inner_text() == "lls"
    tab.wait_for_function("new URL(location).searchParams.has('bpe_token')")
    tab.locator(".gf-bpe-tree .gf-bpe-chip:not(.gf-bpe-made)").first.click()
    expect(tab.locator("[data-is=treetitle]")).to_have_text("This token is a starting symbol")
