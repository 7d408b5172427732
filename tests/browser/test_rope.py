"""The RoPE view in a real Chromium: arrows turn in the browser, and both together leave the score."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.visit import opened

VIEW = (
    "positions?positions_view=RoPE&model=shakespeare-modern&text=First%20Citizen%3A%0A"
    "&rope_query=9&rope_key=5&measure=true"
)
SCORE = "() => document.querySelector('.gf-rope-said').textContent.match(/q·k = (\\S+),/)[1]"
ANGLE = "() => document.querySelector('.gf-rope-big .gf-rope-arrow-q').getAttribute('transform')"


def test_arrows_turn_and_together_they_leave_the_score(page, app_url):
    opened(page, f"{app_url}/{VIEW}", ".gf-rope-small")
    page.evaluate("window.kept = document.querySelector('.gf-rope')")
    expect(page.locator(".gf-rope-small")).to_have_count(16)
    products = page.locator(".gf-rope-small .gf-rope-value").all_inner_texts()
    score, angle = page.evaluate(SCORE), page.evaluate(ANGLE)
    assert (
        abs(sum(float(p.replace("−", "-")) for p in products) - float(score.replace("−", "-"))) < 0.09
    )  # 16 roundings of 0.005

    page.get_by_label("move both together").click()
    query = page.get_by_label("Position of the query")
    query.focus()
    for _ in range(3):
        query.press("ArrowRight")
    expect(page.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 12")
    expect(page.locator(".gf-rope-k .gf-rope-name")).to_contain_text("at position 8")
    assert page.evaluate(SCORE) == score and page.evaluate(ANGLE) != angle
    assert page.locator(".gf-rope-small .gf-rope-value").all_inner_texts() == products

    page.get_by_label("move both together").click()
    query.press("ArrowRight")
    expect(page.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 13")
    assert page.evaluate(SCORE) != score
    expect(page).to_have_url(re.compile(r"rope_at=13-8-0"))
    expect(page.locator("table")).to_contain_text(
        "q·k at (13, 8)"
    )  # the figures below follow when the hand lets go
    assert page.evaluate("window.kept.isConnected")


@pytest.mark.exhaustive
def test_play_keys_and_a_chosen_token_move_the_arrows(page, app_url):
    opened(page, f"{app_url}/{VIEW}&rope_at=9-5-3", ".gf-rope-small")
    query, key = page.locator(".gf-rope-q .gf-rope-name"), page.locator(".gf-rope-k .gf-rope-name")
    expect(page.locator(".gf-rope-about")).to_contain_text("Pair 3: dimensions 3 and 19")
    page.get_by_label("Play: one position after another").click()
    expect(query).to_contain_text(re.compile(r"at position 1[1-9]"))
    page.get_by_label("Pause").click()
    expect(key).to_contain_text("at position 5")
    chosen = page.locator('.gf-rope-small[aria-checked="true"]')
    chosen.focus()
    chosen.press("ArrowRight")
    expect(page.locator(".gf-rope-about")).to_contain_text("Pair 4: dimensions 4 and 20")
    expect(page).to_have_url(re.compile(r"rope_at=1\d-5-4"))
    page.locator(".gf-tokens").first.locator(".gf-token").nth(3).click()
    expect(query).to_contain_text("at position 3")
    expect(key).to_contain_text("at position 5")
