"""The running map on Home in a real Chromium: what a newcomer does in a minute, and where each place leads."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from engine import checkpoints
from engine.recording import record
from tests.browser import visit
from tests.browser.conftest import after_frames, settled
from tests.browser.server import ROOT
from tests.pages.real_model import REAL, carried

CLASSIC = "shakespeare-classic"
HERE = f"?model={CLASSIC}&text=To+be&home_block=2&home_head=3"
ANSWERED = "id => document.querySelector('.gf-live').dataset.answered !== id"


def opened(page, url, query=f"?model={CLASSIC}"):
    visit.opened(page, f"{url}/{query}", ".gf-live-bars button")


def linked(tab, url):
    visit.linked(tab, f"{url}/{HERE}", ".gf-live-bars button")


def field(page):
    return page.get_by_role("textbox", name="Your text")


def typed(page, text):
    before = page.locator(".gf-live").get_attribute("data-answered")
    field(page).fill(text)
    page.wait_for_function(ANSWERED, arg=before)
    settled(page)


def write(page):
    before = page.locator(".gf-live").get_attribute("data-answered")
    page.get_by_role("button", name="Write", exact=True).click()
    page.wait_for_function(ANSWERED, arg=before)


def slide(page, name, value):
    page.locator(f".gf-live input[data-name={name}]").evaluate(
        "(range, value) => { range.value = value; range.dispatchEvent(new Event('input')) }", str(value)
    )


def bars(page):
    said = page.locator(".gf-live-bars").get_attribute("data-chances")
    return [float(one) for one in said.split()]


def read(text):
    found = checkpoints.load(ROOT / "checkpoints" / CLASSIC)
    return record(found.model, found.tokenizer.encode(text))


def shares(text, temperature=1.0, kept=None):
    """The model's own probabilities of the next letter, largest first."""
    logits = np.sort(read(text)["logits"][-1].astype(np.float64))[::-1]
    powers = np.exp((logits[:kept] - logits[0]) / temperature)
    return powers / powers.sum()


def traffic(page):
    """What a page that is yet to be opened asks of the server, and the size of what it gets."""
    requests, received = [], []
    page.on(
        "websocket",
        lambda socket: (
            socket.on("framesent", lambda sent: requests.append(1) if b'"do"' in bytes(sent) else None),
            socket.on("framereceived", lambda sent: received.append(len(sent))),
        ),
    )
    return requests, received


@pytest.fixture(scope="module")
def full():
    return read("To be")


def test_bars_follow_temperature_top_k_depth_the_typed_text_and_what_is_written(page, app_url):
    requests, received = traffic(page)
    opened(page, app_url, f"?model={CLASSIC}&text=To+be&home_top_k=3")
    summary = page.locator(".gf-live-summary")
    np.testing.assert_allclose(bars(page)[:3], shares("To be", 1.0, 3), atol=2e-4)
    assert set(bars(page)[3:]) == {0.0}
    slide(page, "temperature", 2)
    wanted = shares("To be", 2.0, 3)
    np.testing.assert_allclose(bars(page)[:3], wanted, atol=2e-4)
    expect(summary).to_contain_text("at temperature 2.0 and top-k 3")
    expect(summary).to_contain_text(re.compile(".*".join(f"{100 * share:.1f}%" for share in wanted)))
    slide(page, "top_k", 4)
    np.testing.assert_allclose(bars(page)[:4], shares("To be", 2.0, 4), atol=2e-4)
    expect(page).to_have_url(re.compile(r"home_top_k=4"))
    slide(page, "depth", 0)
    expect(summary).to_contain_text("Stopped after embedding")

    typed(page, "Now is the winter")
    expect(page).to_have_url(re.compile(r"text=Now\+is\+the\+winter"))
    expect(page.locator(".st-key-answer")).to_contain_text("Now is the winter")
    slide(page, "depth", 1)
    early = bars(page)
    expect(page.locator(".gf-live-depth output")).to_have_text("block 0")
    slide(page, "depth", 4)
    assert early != bars(page)
    for count in (1, 2):
        requests.clear()
        received.clear()
        write(page)
        settled(page)
        assert len(field(page).input_value()) == len("Now is the winter") + count
        assert len(requests) == 1 and sum(received) <= 300_000


@pytest.mark.exhaustive
def test_lanes_run_down_on_a_phone(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, app_url)
    expect(page.locator(".gf-live.gf-tall")).to_have_count(1)
    high, wide = page.locator(".gf-live-stage > canvas").evaluate("c => [c.clientHeight, c.clientWidth]")
    assert high > wide


def test_pointing_tells_and_a_click_leads_to_the_place(tab, app_url, full):
    linked(tab, app_url)
    np.testing.assert_allclose(bars(tab), shares("To be")[: len(bars(tab))], atol=2e-4)
    expect(tab.locator(".gf-live-summary")).to_contain_text(
        "Stopped after block 3, at temperature 1.0 and top-k all"
    )
    head = tab.get_by_role("button", name="Head 2.3", exact=True)
    head.hover()
    card = tab.locator(".gf-live-card")
    expect(card).to_contain_text("blocks.2.pattern (head, query, key) = (4, 5, 5)")
    row = full["blocks.2.pattern"][3, -1]
    expect(card).to_contain_text(f"“{'To␣be'[int(row.argmax())]}”")
    said = float(re.search(r"([\d.]+)% of its weight", card.inner_text())[1])
    assert abs(said - 100 * row.max()) < 0.3
    head.click()
    expect(tab).to_have_url(re.compile(r"/attention\?"))
    for part in ("attention_layer=2", "attention_head=3", "text=To\\+be", f"model={CLASSIC}"):
        expect(tab).to_have_url(re.compile(part))
    expect(tab.locator(".gf-heads-large")).to_be_visible()


STOP = """() => { const e = document.activeElement, l = e.closest('.gf-live'); return !l ? '' : e.matches('canvas') ? 'map'
  : e.closest('.gf-live-bars') ? 'bar' : e.closest('.gf-live-heads') ? 'head' : e.dataset.name ?? e.textContent }"""
ALONG = [
    "token",
    "embed",
    "pos_embed",
    "embedding",
    "stream",
    "stream",
    "norm",
    "head",
    "attn_out",
    "middle",
    "norm",
]
ALONG += [*["neuron"] * 6, "ffn_out", "stream", "stream", "norm_final", "guess"]


def test_one_stop_of_the_tab_key_and_arrows_to_everything(tab, app_url, full):
    linked(tab, app_url)
    field(tab).focus()
    stops = []
    for _ in range(24):
        tab.keyboard.press("Tab")
        stops.append(tab.evaluate(STOP))
    assert stops.count("map") == 1 and stops.count("bar") == 1 and "head" not in stops
    card, press = tab.locator(".gf-live-card"), tab.keyboard.press
    tab.locator(".gf-live-stage > canvas").focus()
    press("ArrowRight")
    press("Home")
    expect(card).to_contain_text("tokens (query) = (5)")
    for number, kind in enumerate(ALONG):
        if number:
            press("ArrowRight")
        expect(card).to_have_attribute("data-kind", kind)
    press("ArrowRight")  # there is none after the last
    expect(card).to_have_attribute("data-kind", "guess")
    press("Home")
    press("ArrowUp")
    expect(card).to_contain_text("“b”")
    press("ArrowDown")
    for _ in range(5):
        press("ArrowUp")
    expect(card).to_contain_text("Block 2, open")
    size = float((full["blocks.2.resid_post"][0].astype(float) ** 2).mean() ** 0.5)
    expect(card).to_contain_text(f"{size:.3g}")
    expect(card).to_contain_text("(query, d_model) = (5, 128) → (query, d_model) = (5, 128)")
    press("ArrowRight")
    press("ArrowRight")
    expect(card).to_contain_text("Head 2.1")
    press("PageUp")
    expect(card).to_contain_text("Head 1.1")
    press("ArrowDown")
    press("End")
    expect(card).to_contain_text("After “T”")
    expect(tab.locator(".gf-live-said")).to_have_attribute("aria-live", "polite")
    press("Enter")
    expect(tab).to_have_url(re.compile("/residual.*residual_token=0"))


@pytest.mark.exhaustive
@carried
def test_any_text_is_drawn_by_the_real_model_and_each_token_asks_once(page, app_url):
    requests, received = traffic(page)
    whole = "document.querySelector('.gf-live').dataset.whole === 'true'"
    opened(page, app_url, f"?model={REAL}")
    for text in ("😀🎉", "שלום עולם", "word " * 2000, "The moon"):
        typed(page, text)
        assert sum(bars(page)) > 0.05
    page.wait_for_function(whole)
    for _ in range(3):
        requests.clear()
        received.clear()
        write(page)
        page.wait_for_function(whole)
        settled(page)
        assert len(requests) == 1 and sum(received) <= 600_000
    slide(page, "depth", 3)  # all depths are there, and nobody is asked for them
    requests.clear()
    assert sum(bars(page)) > 0 and not requests


@pytest.mark.exhaustive
def test_the_training_is_played_from_beginning_to_end(page, app_url):
    opened(page, app_url, "?model=timelapse&step=0&text=hark,+hark,+har")
    play = page.get_by_role("button", name="Play the training")
    track = page.locator(".gf-live-course input")
    last = int(track.get_attribute("max"))
    play.click()
    page.wait_for_function("Number(document.querySelector('.gf-live-course input').value) >= 6")
    page.locator(".gf-live-course button").first.click()  # it pauses
    settled(page)
    at = track.input_value()
    after_frames(page, 60)
    assert track.input_value() == at
    track.evaluate("(range) => { range.value = range.max - 4; range.dispatchEvent(new Event('input')) }")
    settled(page)
    page.get_by_role("button", name="Play the training").click()
    page.wait_for_function(
        "(n) => Number(document.querySelector('.gf-live-course input').value) === n", arg=last
    )
    expect(page.get_by_role("button", name="Play the training")).to_be_visible()  # it stops at the end
    page.wait_for_function(
        "Number(document.querySelector('.gf-live-bars').dataset.chances.split(' ')[0]) > 0.8"
    )
