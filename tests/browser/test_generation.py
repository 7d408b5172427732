"""The writer in a real Chromium: text that streams, steps, branches, and a link that brings them back."""

import math
import re

import pytest
from playwright.sync_api import expect

from engine.config import SampleConfig
from engine.sample import steps
from engine.weights.checkpoints import load
from tests.browser import visit
from ui.fit_text import show_token
from ui.site import ROOT

WARM = SampleConfig(temperature=0.8, top_p=0.95, seed=5)
PROMPT = "KING RICHARD II:\n"


@pytest.fixture(scope="module")
def written():
    import torch

    torch.set_num_threads(1)
    model = load(ROOT / "checkpoints" / "shakespeare-classic")
    records = list(steps(model.model, model.tokenizer.encode(PROMPT), 150, WARM))
    logs = [float(r.logits.double().log_softmax(-1)[r.token]) for r in records]
    return "".join(model.tokenizer.decode([r.token]) for r in records), logs


def opened(page, url, **query):
    asked = "&".join(
        f"{k}={v}" for k, v in ({"generation_seed": 5, "generation_length": 150} | query).items()
    )
    visit.opened(page, f"{url}/generation?{asked}", ".gf-writer[data-at]")


def at(page, wanted: int) -> None:
    page.wait_for_function("n => document.querySelector('.gf-writer').dataset.at === String(n)", arg=wanted)


def shown(page) -> str:
    words = page.evaluate(
        "[...document.querySelectorAll('.gf-writer-text .gf-writer-token:not(.gf-hidden, .gf-later)')].map(e"
        " => e.textContent).join('')"
    )
    return words.replace("⏎\n", "⏎").replace(" ", "␣")


def to_the_end(page) -> None:
    page.get_by_role("button", name="Write to the end").click()
    page.wait_for_function("document.querySelector('.gf-writer').dataset.ended !== ''")
    at(page, int(page.locator(".gf-writer").get_attribute("data-known")))


def test_text_streams_by_itself_and_is_the_engines(page, app_url, written):
    text, logs = written
    opened(page, app_url)
    page.wait_for_function("Number(document.querySelector('.gf-writer').dataset.at) > 12")
    assert page.get_by_role("button", name="Pause").is_visible()
    page.keyboard.press("Tab")
    page.locator(".gf-writer-text").focus()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    now = int(page.locator(".gf-writer").get_attribute("data-at"))
    assert shown(page) == show_token(text[:now])
    to_the_end(page)
    assert shown(page) == show_token(text)
    expect(page.locator(".gf-writer-said")).to_have_text("Stopped at the requested length of 150 tokens.")
    box = page.locator(".gf-writer")
    assert float(box.get_attribute("data-total")) == pytest.approx(sum(logs), abs=0.01)
    assert float(box.get_attribute("data-nats")) == pytest.approx(-sum(logs) / 150, abs=1e-3)
    expect(page.locator(".gf-writer-facts")).to_contain_text(f"{math.exp(-sum(logs) / 150):.2f}")
    begin = 129 - 64  # 17 + 150 tokens are more than the context of 128: it went on from the last half
    expect(page.locator(".gf-writer-window")).to_contain_text(
        f"the first {begin} (grey), up to “…{(PROMPT + text)[:begin][-30:]}”".replace("\n", "⏎")
    )
    assert page.locator(".gf-writer-given.gf-dropped").count() == len(PROMPT) + 1  # and the legend's
    assert page.locator(".gf-writer-token.gf-dropped").count() == begin - len(PROMPT)


def test_arrows_step_over_what_is_there_without_the_server(page, app_url, written):
    text, logs = written
    opened(page, app_url, generation_tree="150", generation_at="0.30")
    at(page, 30)
    sent = page.evaluate("""async () => {
        const box = document.querySelector('.gf-writer'), text = box.querySelector('.gf-writer-text'), seen = []
        for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'Home', 'ArrowRight']) {
          text.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
          seen.push(box.dataset.at)
        }
        return seen }""")
    assert sent == ["29", "28", "29", "0", "1"]  # within one task: nothing can have come from the server
    assert shown(page) == show_token(text[0]) and page.locator(".gf-writer-token.gf-later").count() > 20
    assert float(page.locator(".gf-writer").get_attribute("data-total")) == pytest.approx(logs[0], abs=1e-3)
    expect(page.locator(".gf-writer-row").first).to_contain_text("%")
    expect(page).to_have_url(re.compile(r"generation_at=0\.1\b"))
    title = page.locator(".gf-writer-panel .gf-writer-title")
    # The pointer shows another token's alternatives, a click stands on it.
    page.locator(".gf-writer-token").nth(0).hover()
    expect(title).to_have_text("Candidates for token 1")
    page.locator(".gf-writer-token").nth(9).click()
    at(page, 10)
    page.locator(".gf-writer-token").nth(3).hover()
    expect(title).to_have_text("Candidates for token 4")
    page.mouse.move(5, 5)
    expect(title).to_have_text("Candidates for token 10")


def test_another_token_begins_a_branch_and_a_reload_keeps_both(page, app_url, written):
    text, _ = written
    opened(page, app_url, generation_tree="150", generation_at="0.20")
    at(page, 20)
    page.locator(".gf-writer-token").nth(7).click()  # who steps goes on stepping; who plays, playing
    at(page, 8)
    page.evaluate("window.writer = document.querySelector('.gf-writer')")
    rows = page.locator(".gf-writer-row:not(.gf-here)")
    rows.nth(0).click()
    expect(page.locator(".gf-writer-branch")).to_have_count(2)
    at(page, 8)
    assert shown(page)[:7] == show_token(text[:7]) and shown(page)[7] != show_token(text[7])
    expect(page.locator(".gf-writer-token.gf-picked")).to_have_count(2)  # it, and the legend's
    expect(page.locator(".gf-writer-said")).to_contain_text("picked instead of")
    to_the_end(page)
    other = shown(page)
    expect(page).to_have_url(re.compile(r"generation_tree=150_150-8\.\d+&.*generation_at=1\.150"))
    page.get_by_label("Another token").fill("☃")
    page.keyboard.press("Enter")
    expect(page.locator(".gf-writer-answer")).to_contain_text("no token")
    assert page.evaluate("window.writer.isConnected")
    page.locator(".gf-writer-branch").first.click()
    at(page, 150)
    assert shown(page) == show_token(text)
    page.locator(".gf-writer-branch").nth(1).click()
    expect(page).to_have_url(re.compile(r"generation_at=1\.150"))
    page.reload()
    page.wait_for_selector(".gf-writer[data-at='150']")
    expect(page.locator(".gf-writer-branch")).to_have_count(2)
    assert shown(page) == other
    page.get_by_role("button", name=re.compile("Delete the branch")).nth(1).click()
    expect(page.locator(".gf-writer-branch")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"generation_at=0\.7\b"))
    assert shown(page) == show_token(text[:7])
