"""The RoPE view in a real Chromium: arrows turn in the browser, both together leave the score, the link keeps
the place, a phone can hold it.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled

VIEW = (
    "positions?positions_view=RoPE&model=shakespeare-modern&text=First%20Citizen%3A%0A"
    "&rope_query=9&rope_key=5&measure=true"
)
SLOW = 90_000
SCORE = "() => document.querySelector('.gf-rope-said').textContent.match(/q·k = (\\S+),/)[1]"
ANGLE = "() => document.querySelector('.gf-rope-big .gf-rope-arrow-q').getAttribute('transform')"


def opened(page, url, more=""):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}/{VIEW}{more}")
    page.wait_for_selector(".gf-rope-small", timeout=SLOW)
    settled(page, SLOW)
    return problems


def test_arrows_turn_and_together_they_leave_the_score(page, app_url):
    problems = opened(page, app_url)
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
    assert page.evaluate("window.kept.isConnected") and problems == []


@pytest.mark.exhaustive
def test_play_moves_the_query_and_a_pair_is_chosen_by_keys(page, app_url):
    problems = opened(page, app_url, "&rope_at=9-5-3")
    expect(page.locator(".gf-rope-about")).to_contain_text("Pair 3: dimensions 3 and 19")
    page.get_by_label("Play: one position after another").click()
    expect(page.locator(".gf-rope-q .gf-rope-name")).to_contain_text(re.compile(r"at position 1[1-9]"))
    page.get_by_label("Pause").click()
    expect(page.locator(".gf-rope-k .gf-rope-name")).to_contain_text("at position 5")
    chosen = page.locator('.gf-rope-small[aria-checked="true"]')
    chosen.focus()
    chosen.press("ArrowRight")
    expect(page.locator(".gf-rope-about")).to_contain_text("Pair 4: dimensions 4 and 20")
    expect(page).to_have_url(re.compile(r"rope_at=1\d-5-4"))
    assert problems == []


@pytest.mark.exhaustive
def test_another_token_brings_the_arrows_home_and_a_phone_holds_them(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    problems = opened(page, app_url, "&rope_at=30-20-0")
    expect(page.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 30")
    page.locator(".gf-tokens").first.locator(".gf-token").nth(3).click()
    expect(page.locator(".gf-rope-q .gf-rope-name")).to_contain_text("at position 3")
    expect(page.locator(".gf-rope-k .gf-rope-name")).to_contain_text("at position 5")
    expect(page).to_have_url(re.compile(r"rope_at=3-5-0"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert problems == []
