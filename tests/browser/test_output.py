"""The output's pages in a real Chromium: the sampler answers without the server, caches are filled, trees grow."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.browser.visit import opened


def sampled(page, url, query):
    opened(page, f"{url}/sampling?{query}", ".gf-sampler[data-stages]")


def test_a_slider_answers_at_once_stands_in_the_link_and_cut_tokens_say_by_which_stage(page, app_url):
    sampled(page, app_url, "sampling_top_k=3&sampling_top_p=1")
    cut = page.locator(".gf-sampler-cell.gf-cut")
    assert cut.count() == 7  # ten rows, three of them kept
    expect(cut.first).to_have_text("✕ top-k")
    page.evaluate("window.sampler = document.querySelector('.gf-sampler')")
    slider = page.get_by_label("Temperature", exact=True)
    # Within one task of the browser nothing can have come from the server.
    before, after = slider.evaluate("""async (s) => {
        const box = document.querySelector('.gf-sampler'), before = box.dataset.stages
        s.value = '1.9'; s.dispatchEvent(new Event('input', { bubbles: true }))
        await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame)
        return [before, box.dataset.stages] }""")
    assert before != after
    expect(page).to_have_url(re.compile("sampling_temperature=1.9"))
    settled(page)
    assert page.evaluate("window.sampler.isConnected")
    page.reload()
    expect(page.get_by_label("Temperature, exactly")).to_have_value("1.9")


PLAYER = ".gf-kv"
CACHE = "generation?generation_view=KV+cache"


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
    opened(page, f"{app_url}/{CACHE}&kv_length=12", f"{PLAYER} canvas")
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
    expect(page.locator(f"{PLAYER} output")).to_contain_text("step 1:")
