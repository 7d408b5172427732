"""Coloured tokens in a real Chromium: pointed at, walked with the keys, as bytes where a character is cut,
and on a phone.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from playwright.sync_api import expect

from tests.browser.conftest import settled

SLOW = 90_000


def opened(page, url, text, show=("Characters", "Bytes", "BPE 300")):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    chosen = "".join(f"&compare_show={quote(name)}" for name in show)
    page.goto(
        f"{url}/tokens?tokens_view=Compare+tokenizers&compare_corpus=The+Python+manual&compare_text={quote(text)}{chosen}"
    )
    page.wait_for_selector(".gf-chip", timeout=SLOW)
    settled(page)
    return problems


def row(page, name):
    return page.locator(".gf-chips-row").filter(
        has=page.locator(".gf-chips-name", has_text=re.compile(f"^{name}$"))
    )


def test_a_token_tells_its_id_and_bytes_to_the_mouse_and_to_the_keys(page, app_url):
    problems = opened(page, app_url, "a €")
    tip = page.locator(".gf-chips-tip")
    row(page, "Bytes").locator(".gf-chip").nth(3).hover()
    expect(tip).to_contain_text("id 130")  # 0x82
    expect(tip).to_contain_text("1 byte: 82")
    expect(row(page, "Characters").locator(".gf-chip-same")).to_have_text(
        ["€"]
    )  # the same place in the other cut
    expect(row(page, "Bytes").locator(".gf-chip-hex")).to_have_text(["E2", "82", "AC"])
    row(page, "Characters").locator(".gf-chips-body").focus()
    page.keyboard.press("End")
    expect(tip).to_contain_text("“€”")
    expect(row(page, "Bytes").locator(".gf-chip-same")).to_have_text(["E2", "82", "AC"])
    page.keyboard.press("ArrowDown")  # into the bytes, at the same place
    expect(tip).to_contain_text("token 2 of 5")
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("id 130")
    assert "id 130" in page.locator('.gf-chip[aria-selected="true"]').last.get_attribute("aria-label")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    assert problems == []


def test_a_rerun_leaves_what_has_not_changed_and_what_a_person_typed_is_text(page, app_url):
    problems = opened(page, app_url, "<b>x</b> <|endoftext|>")
    assert page.locator(".gf-chips b").count() == 0
    expect(row(page, "Characters").locator(".gf-chip")).to_have_count(22)
    page.evaluate("window.kept = document.querySelector('.gf-chips-row .gf-chip')")
    page.get_by_role("button", name="Tokenizers").click()
    page.get_by_role("button", name="BPE 512", exact=True).click()
    expect(row(page, "BPE 512")).to_be_visible(timeout=SLOW)
    assert page.evaluate("window.kept.isConnected")
    expect(page).to_have_url(re.compile("compare_show=BPE(\\+|%20)512"))
    page.keyboard.press("Escape")
    page.locator("button", has_text=re.compile("^Code$")).click()
    expect(row(page, "Characters").locator(".gf-chip").first).to_have_text("d", timeout=SLOW)
    expect(page).to_have_url(re.compile("compare_text=def"))
    assert problems == []


def test_a_phone_holds_both_views(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, app_url, "averyveryverylongwordthatdoesnotbreak" * 8 + " मॉडल 👩‍👩‍👧‍👦")
    row(page, "Characters").locator(".gf-chip").nth(12).hover()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(
        "(() => { const box = document.querySelector('.gf-chips-tip').getBoundingClientRect(); return"
        " box.left >= 0 && box.right <= 390 })()"
    )
    page.goto(f"{app_url}/tokens?tokens_view=What+vocabulary+size+costs&cost_corpus=The+Python+manual")
    page.wait_for_selector(".gf-figure .main-svg", timeout=SLOW)
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
