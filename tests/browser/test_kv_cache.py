"""The player of the KV cache in a real Chromium: it steps without the server, plays, pauses, and is in its link."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import after_frames, settled
from tests.browser.visit import opened

SLOW = 90_000
PLAYER = ".gf-kv"
ADDRESS = "generation?generation_view=KV+cache"


def lit(page, panel: int, row: int) -> list[float]:
    """Opacity of the first cells of a row of a panel's picture: 1 for computed, less for read from the
    cache.
    """
    return page.evaluate(
        """([panel, row]) => {
          const canvas = document.querySelectorAll('.gf-kv canvas')[panel], scale = canvas.width / canvas.clientWidth
          const rows = Number(document.querySelector('.gf-kv input').max) + 1, columns = 17 + rows - 1
          const cell = canvas.clientWidth / columns, high = Math.min(16, Math.max(3, 170 / rows)), context = canvas.getContext('2d')
          return Array.from({ length: columns }, (_, i) => context.getImageData((i + 0.5) * cell * scale, (row + 0.5) * high * scale, 1, 1).data[3] / 255)
        }""",
        [panel, row],
    )


def test_the_keyboard_steps_without_the_server_and_the_link_brings_it_back(page, app_url):
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    opened(page, f"{app_url}/{ADDRESS}&kv_length=12", f"{PLAYER} canvas")
    page.get_by_role("button", name="Pause").click()  # it plays by itself
    settled(page)
    before = len(sent)
    slider = page.get_by_role("slider", name="Step", exact=True)
    slider.focus()
    slider.press("Home")
    now, total = page.locator(".gf-kv-now"), page.locator(".gf-kv-sum")
    expect(now.nth(0)).to_contain_text("17 positions computed, ")  # the prompt has to be read either way
    assert now.nth(0).text_content() == now.nth(1).text_content()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    expect(now.nth(0)).to_contain_text("This step: 1 position computed, 18 read from the cache")
    expect(now.nth(1)).to_contain_text("This step: 19 positions computed, ")
    expect(total.nth(0)).to_contain_text("So far: 19 positions")
    expect(total.nth(1)).to_contain_text("So far: 54 positions")  # 17 + 18 + 19
    with_cache, without = lit(page, 0, 1), lit(page, 1, 1)
    assert all(0.2 < x < 0.4 for x in with_cache[:17]) and with_cache[17] == 1
    assert all(x == 1 for x in without[:18]) and without[18] == 0
    expect(page.locator(".gf-kv-formula")).to_contain_text("4 · 2 · 4 · 32 · 19 · 4 = 77,824 bytes")
    assert page.locator(PLAYER).get_attribute("data-bytes") == str(4 * 2 * 4 * 32 * 19 * 4)
    assert page.locator(".gf-kv-slots .gf-kv-computed").count() == 1
    assert page.locator(".gf-kv-slots .gf-kv-read").count() == 18
    texts = page.locator(".gf-kv-text").all_text_contents()
    assert texts[0] == texts[1] and len(texts[0]) == 17 + 3
    expect(page.locator(".gf-kv-same")).to_have_text("✓ Identical so far: 3 of 3 tokens.")
    page.get_by_role("button", name="One step back").click()
    expect(page).to_have_url(re.compile(r"kv_step=1(&|$)"))
    assert len(sent) == before, "the server was asked"
    page.goto(page.url)
    expect(page.locator(f"{PLAYER} output")).to_contain_text("step 1:", timeout=SLOW)


def test_it_plays_and_pauses_and_a_longer_text_does_not_disturb_it(page, app_url):
    opened(page, f"{app_url}/{ADDRESS}&kv_length=8&kv_step=0", f"{PLAYER} canvas")
    page.evaluate("window.player = document.querySelector('.gf-kv')")
    output = page.locator(f"{PLAYER} output")
    page.get_by_role("button", name="Play: one token after another").click()
    expect(output).to_contain_text(re.compile(r"step [23]"))
    page.get_by_role("button", name="Pause").click()
    stopped = output.text_content()
    after_frames(page, 60)
    assert output.text_content() == stopped
    page.get_by_role("slider", name="Tokens to write").press("ArrowRight")
    expect(page.get_by_role("slider", name="Step", exact=True)).to_have_attribute("max", "8", timeout=SLOW)
    assert output.text_content() == stopped and page.evaluate("window.player.isConnected")
    page.get_by_role("button", name="Play: one token after another").click()
    expect(output).to_contain_text("step 8")
    expect(
        page.get_by_role("button", name="Play: one token after another")
    ).to_be_visible()  # it stops at the end
