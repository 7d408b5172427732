"""Coloured tokens in a real Chromium: pointed at, walked with the keys, as bytes where a character is cut."""

import re
from urllib.parse import quote

from playwright.sync_api import expect

from tests.browser import visit

SLOW = 90_000


def opened(page, url, text):
    chosen = "".join(f"&compare_show={quote(name)}" for name in ("Characters", "Bytes", "BPE 300"))
    asked = (
        f"tokens_view=Compare+tokenizers&compare_corpus=The+Python+manual&compare_text={quote(text)}{chosen}"
    )
    visit.opened(page, f"{url}/tokens?{asked}", ".gf-chip")


def row(page, name):
    return page.locator(".gf-chips-row").filter(
        has=page.locator(".gf-chips-name", has_text=re.compile(f"^{name}$"))
    )


def test_a_token_tells_its_id_and_bytes_to_the_mouse_and_to_the_keys(page, app_url):
    opened(page, app_url, "a €")
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


def test_a_rerun_leaves_what_has_not_changed_and_what_a_person_typed_is_text(page, app_url):
    opened(page, app_url, "<b>x</b> <|endoftext|>")
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
