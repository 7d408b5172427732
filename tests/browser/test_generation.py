"""The writer in a real Chromium: text that streams, steps, branches, and a link that brings them back."""

import math
import re

import pytest
from playwright.sync_api import expect

from engine.checkpoints import load
from engine.config import SampleConfig
from engine.sample import steps
from tests.browser import visit
from ui.fit_text import show_token
from ui.site import ROOT

WARM = SampleConfig(temperature=0.8, top_p=0.95, seed=5)
PROMPT = "KING RICHARD II:\n"
READS = "model=shakespeare-classic&text=KING+RICHARD+II%3A%0A"


@pytest.fixture(scope="module")
def written():
    import torch

    torch.set_num_threads(1)
    model = load(ROOT / "checkpoints" / "shakespeare-classic")
    records = list(steps(model.model, model.tokenizer.encode(PROMPT), 150, WARM))
    logs = [float(r.logits.double().log_softmax(-1)[r.token]) for r in records]
    return "".join(model.tokenizer.decode([r.token]) for r in records), logs


def opened(tab, url, query=""):
    address = f"{url}/generation?{READS}&generation_seed=5&generation_length=150{query}"
    visit.linked(tab, address, ".gf-writer[data-at]")


def at(tab, wanted: int) -> None:
    tab.wait_for_function("n => document.querySelector('.gf-writer').dataset.at === String(n)", arg=wanted)


def shown(tab) -> str:
    words = tab.evaluate(
        "[...document.querySelectorAll('.gf-writer-text .gf-writer-token:not(.gf-hidden, .gf-later)')].map(e"
        " => e.textContent).join('')"
    )
    return words.replace("⏎\n", "⏎").replace(" ", "␣")


def to_the_end(tab) -> None:
    tab.get_by_role("button", name="To the last token").click()
    tab.wait_for_function("document.querySelector('.gf-writer').dataset.ended !== ''")
    at(tab, int(tab.locator(".gf-writer").get_attribute("data-known")))


def test_text_streams_by_itself_is_the_engines_and_is_stepped_over(tab, app_url, written):
    text, logs = written
    opened(tab, app_url)
    tab.wait_for_function("Number(document.querySelector('.gf-writer').dataset.at) > 12")
    assert tab.get_by_role("button", name="Pause").is_visible()
    tab.keyboard.press("Tab")
    tab.locator(".gf-writer-text").focus()
    tab.keyboard.press(" ")
    expect(tab.get_by_role("button", name="Play", exact=True)).to_be_visible()
    now = int(tab.locator(".gf-writer").get_attribute("data-at"))
    assert shown(tab) == show_token(text[:now])
    to_the_end(tab)
    assert shown(tab) == show_token(text)
    expect(tab.locator(".gf-writer-said")).to_have_text("Stopped at the requested length of 150 tokens.")
    box = tab.locator(".gf-writer")
    assert float(box.get_attribute("data-total")) == pytest.approx(sum(logs), abs=0.01)
    assert float(box.get_attribute("data-nats")) == pytest.approx(-sum(logs) / 150, abs=1e-3)
    expect(tab.locator(".gf-writer-facts")).to_contain_text(f"{math.exp(-sum(logs) / 150):.2f}")
    begin = 129 - 64  # 17 + 150 tokens are more than the context of 128: it went on from the last half
    expect(tab.locator(".gf-writer-window")).to_contain_text(
        f"the first {begin} (grey), up to “…{(PROMPT + text)[:begin][-30:]}”".replace("\n", "⏎")
    )
    assert tab.locator(".gf-writer-given.gf-dropped").count() == len(PROMPT) + 1  # and the legend's
    assert tab.locator(".gf-writer-token.gf-dropped").count() == begin - len(PROMPT)

    # Arrows step over what is there without the server.
    steps_at = tab.evaluate("""async () => {
        const box = document.querySelector('.gf-writer'), text = box.querySelector('.gf-writer-text'), seen = []
        for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'Home', 'ArrowRight']) {
          text.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
          seen.push(box.dataset.at)
        }
        return seen }""")
    # Within one task nothing can have come from the server.
    assert steps_at == ["149", "148", "149", "0", "1"]
    assert shown(tab) == show_token(text[0]) and tab.locator(".gf-writer-token.gf-later").count() > 20
    assert float(tab.locator(".gf-writer").get_attribute("data-total")) == pytest.approx(logs[0], abs=1e-3)
    expect(tab.locator(".gf-writer-row").first).to_contain_text("%")
    expect(tab).to_have_url(re.compile(r"generation_at=0\.1\b"))
    title = tab.locator(".gf-writer-panel .gf-writer-title")
    # The pointer shows another token's alternatives, a click stands on it.
    tab.locator(".gf-writer-token").nth(0).hover()
    expect(title).to_have_text("Candidates for token 1")
    tab.locator(".gf-writer-token").nth(9).click()
    at(tab, 10)
    tab.locator(".gf-writer-token").nth(3).hover()
    expect(title).to_have_text("Candidates for token 4")
    tab.mouse.move(5, 5)
    expect(title).to_have_text("Candidates for token 10")


def test_another_token_begins_a_branch_and_a_reload_keeps_both(tab, app_url, written):
    text, _ = written
    opened(tab, app_url, "&generation_tree=150&generation_at=0.20")
    tab.locator(".gf-writer-token").nth(7).click()  # who steps goes on stepping; who plays, playing
    at(tab, 8)
    writer = tab.locator(".gf-writer").element_handle()
    rows = tab.locator(".gf-writer-row:not(.gf-here)")
    rows.nth(0).click()
    expect(tab.locator(".gf-writer-branch")).to_have_count(2)
    at(tab, 8)
    assert shown(tab)[:7] == show_token(text[:7]) and shown(tab)[7] != show_token(text[7])
    expect(tab.locator(".gf-writer-token.gf-picked")).to_have_count(2)  # it, and the legend's
    expect(tab.locator(".gf-writer-said")).to_contain_text("picked instead of")
    to_the_end(tab)
    other = shown(tab)
    expect(tab).to_have_url(re.compile(r"generation_tree=150_150-8\.\d+&.*generation_at=1\.150"))
    tab.get_by_label("Another token").fill("☃")
    tab.keyboard.press("Enter")
    expect(tab.locator(".gf-writer-answer")).to_contain_text("no token")
    assert writer.evaluate("node => node.isConnected")
    tab.locator(".gf-writer-branch").first.click()
    at(tab, 150)
    assert shown(tab) == show_token(text)
    tab.locator(".gf-writer-branch").nth(1).click()
    expect(tab).to_have_url(re.compile(r"generation_at=1\.150"))
    tab.reload()
    tab.wait_for_selector(".gf-writer[data-at='150']")
    expect(tab.locator(".gf-writer-branch")).to_have_count(2)
    assert shown(tab) == other
    tab.get_by_role("button", name=re.compile("Delete the branch")).nth(1).click()
    expect(tab.locator(".gf-writer-branch")).to_have_count(1)
    expect(tab).to_have_url(re.compile(r"generation_at=0\.7\b"))
    assert shown(tab) == show_token(text[:7])
