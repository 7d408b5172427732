"""The running map on Home in a real Chromium: the first minute, played through."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from engine import checkpoints
from engine.measure.recording import record
from tests.browser.conftest import after_frames, settled
from tests.browser.server import ROOT

CLASSIC = "shakespeare-classic"
TEXT = "ROMEO:\nO, she d"
ANSWERED = "id => document.querySelector('.gf-live').dataset.answered !== id"


def opened(page, url, query=f"?model={CLASSIC}"):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}/{query}")
    page.locator(".gf-live-bars button").first.wait_for(timeout=60_000)
    settled(page)
    return problems


def field(page):
    return page.get_by_role("textbox", name="Your text")


def typed(page, text):
    before = page.locator(".gf-live").get_attribute("data-answered")
    field(page).fill(text)
    page.wait_for_function(ANSWERED, arg=before)
    settled(page)


def slide(page, name, value):
    page.locator(f".gf-live input[data-name={name}]").evaluate(
        "(range, value) => { range.value = value; range.dispatchEvent(new Event('input')) }", str(value)
    )


def bars(page):
    said = page.locator(".gf-live-bars").get_attribute("data-chances")
    return [float(one) for one in said.split()]


def shares(text, temperature=1.0, kept=None):
    """The model's own probabilities of the next letter, largest first."""
    found = checkpoints.load(ROOT / "checkpoints" / CLASSIC)
    logits = np.sort(record(found.model, found.tokenizer.encode(text))["logits"][-1].astype(np.float64))[::-1]
    powers = np.exp((logits[:kept] - logits[0]) / temperature)
    return powers / powers.sum()


def test_bars_are_the_models_and_follow_temperature_and_top_k(page, app_url):
    problems = opened(page, app_url, f"?model={CLASSIC}&text=To+be")
    np.testing.assert_allclose(bars(page), shares("To be")[: len(bars(page))], atol=2e-4)
    slide(page, "temperature", 2)
    np.testing.assert_allclose(bars(page), shares("To be", 2.0)[: len(bars(page))], atol=2e-4)
    slide(page, "top_k", 3)
    np.testing.assert_allclose(bars(page)[:3], shares("To be", 2.0, 3), atol=2e-4)
    assert set(bars(page)[3:]) == {0.0}
    expect(page).to_have_url(re.compile(r"home_top_k=3"))
    page.reload()
    page.locator(".gf-live-bars button").first.wait_for()
    np.testing.assert_allclose(bars(page)[:3], shares("To be", 2.0, 3), atol=2e-4)
    assert problems == []


def test_a_text_is_typed_written_on_and_stopped_early(page, app_url):
    problems = opened(page, app_url)
    typed(page, "Now is the winter")
    expect(page).to_have_url(re.compile(r"text=Now\+is\+the\+winter"))
    expect(page.locator(".st-key-answer")).to_contain_text("Now is the winter")
    slide(page, "depth", 1)
    early = bars(page)
    expect(page.locator(".gf-live-depth output")).to_have_text("block 0")
    slide(page, "depth", 4)
    assert early != bars(page)
    for count in (1, 2):
        before = page.locator(".gf-live").get_attribute("data-answered")
        page.get_by_role("button", name="Write", exact=True).click()
        page.wait_for_function(ANSWERED, arg=before)
        settled(page)
        assert len(field(page).input_value()) == len("Now is the winter") + count
    assert problems == []


@pytest.mark.exhaustive
def test_it_writes_on_and_on_until_it_is_stopped_and_keeps_no_more_than_before(page, app_url):
    opened(page, app_url)
    typed(page, "To be")
    nodes = page.evaluate("document.querySelectorAll('.gf-live *').length")
    page.get_by_role("button", name="Write on and on").click()
    page.wait_for_function("document.querySelector('.gf-live-type input').value.length > 24", timeout=60_000)
    page.locator(".gf-live-write button").last.click()
    settled(page)  # the answer that was awaited is there
    after_frames(page)
    length = len(field(page).input_value())
    after_frames(page, 60)
    assert len(field(page).input_value()) == length
    assert page.evaluate("document.querySelectorAll('.gf-live *').length") <= nodes + 4


def test_pointing_tells_and_a_click_leads_to_the_place(page, app_url):
    opened(page, app_url, f"?model={CLASSIC}&text=To+be&home_block=2")
    head = page.get_by_role("button", name="Head 3 of block 2", exact=True)
    head.hover()
    card = page.locator(".gf-live-card")
    expect(card).to_contain_text("blocks.2.pattern (head, query, key) = (4, 5, 5)")
    found = checkpoints.load(ROOT / "checkpoints" / CLASSIC)
    row = record(found.model, found.tokenizer.encode("To be"))["blocks.2.pattern"][3, -1]
    expect(card).to_contain_text(f"“{'To␣be'[int(row.argmax())]}”")
    said = float(re.search(r"([\d.]+)% of its weight", card.inner_text())[1])
    assert abs(said - 100 * row.max()) < 0.3
    head.click()
    expect(page).to_have_url(re.compile(r"/attention\?"), timeout=30_000)
    for part in ("attention_layer=2", "attention_head=3", "text=To\\+be", f"model={CLASSIC}"):
        expect(page).to_have_url(re.compile(part))
    expect(page.locator(".gf-heads-large")).to_be_visible()


@pytest.mark.exhaustive
def test_training_time_goes_from_noise_to_words(page, app_url):
    problems = opened(page, app_url)
    time = page.get_by_role("slider", name="Training time: the step whose model is shown")
    time.evaluate("(range) => { range.value = 0; range.dispatchEvent(new Event('input')) }")
    expect(page).to_have_url(re.compile(r"model=timelapse"), timeout=30_000)
    expect(page).to_have_url(re.compile(r"step=0"))
    settled(page)
    assert max(bars(page)) < 0.2  # nothing is learned
    time.evaluate("(range) => { range.value = range.max; range.dispatchEvent(new Event('input')) }")
    page.wait_for_function(
        "Number(document.querySelector('.gf-live-bars').dataset.chances.split(' ')[0]) > 0.8", timeout=30_000
    )
    assert page.locator(".gf-live-token").first.inner_text() == "k"  # hark, hark, har
    assert page.locator(".gf-scrub-marks span").count() >= 2
    page.get_by_role("button", name="Back to Shakespeare, classic (trained)").click()
    expect(page).to_have_url(re.compile(f"model={CLASSIC}"), timeout=30_000)
    assert problems == []


@pytest.mark.exhaustive
def test_on_a_phone_lanes_run_down(page, app_url):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, app_url)
    expect(page.locator(".gf-live.gf-tall")).to_have_count(1)
    high, wide = page.locator(".gf-live-stage > canvas").evaluate("c => [c.clientHeight, c.clientWidth]")
    assert high > wide
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_motion_nothing_flies(page, app_url):
    page.emulate_media(reduced_motion="reduce")
    opened(page, app_url)
    before = page.locator(".gf-live").get_attribute("data-answered")
    page.get_by_role("button", name="Write", exact=True).click()
    page.wait_for_function(ANSWERED, arg=before)
    assert page.locator(".gf-live-flying").count() == 0
