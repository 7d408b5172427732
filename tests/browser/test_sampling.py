"""The sampler in a real Chromium: its arithmetic is the engine's, and it answers without the server."""

import json
import re

import pytest
from playwright.sync_api import expect

from engine.checkpoints import load
from engine.config import SampleConfig
from engine.measure.recording import record
from engine.sample import draw, stages, uniform
from tests.browser import visit
from tests.browser.conftest import settled
from ui.site import ROOT

SETTINGS = [
    {"temperature": 0.0, "top_p": 1.0},
    {"temperature": 2.0, "top_k": 12, "top_p": 0.8, "repetition_penalty": 0.6, "penalty_last": True},
]
FIELDS = {
    "Temperature": "temperature",
    "Top-k (0: all)": "top_k",
    "Top-p": "top_p",
    "Min-p": "min_p",
    "Repetition penalty": "repetition_penalty",
}


@pytest.fixture(scope="module")
def logits():
    import torch

    model = load(ROOT / "checkpoints" / "shakespeare-classic")
    ids = model.tokenizer.encode("KING RICHARD II:\n")
    return torch.from_numpy(record(model.model, ids).logits[-1].copy()), ids


def opened(page, url, query):
    visit.opened(page, f"{url}/sampling?{query}", ".gf-sampler[data-stages]")


def test_browser_and_engine_are_one(page, app_url, logits):
    values, ids = logits
    opened(page, app_url, "sampling_seed=11")
    u = float(uniform(11, 1)[0])
    for wanted in SETTINGS:
        config = SampleConfig(**wanted)
        for label, name in FIELDS.items():
            page.get_by_label(f"{label}, exactly").fill(str(getattr(config, name)))
        page.get_by_label("Penalty after the cuts").set_checked(config.penalty_last)
        records = stages(values, config, ids)
        page.wait_for_function(
            "([k, e]) => { const s = JSON.parse(document.querySelector('.gf-sampler').dataset.stages).at(-1);"
            " return s[1] === k && Math.abs(s[3] - e) < 1e-4 }",
            arg=[records[-1].kept, records[-1].entropy],
        )
        shown = json.loads(page.locator(".gf-sampler").get_attribute("data-stages"))
        assert [s[0] for s in shown] == [r.name for r in records] and [s[1] for s in shown] == [
            r.kept for r in records
        ]
        assert [s[2] for s in shown] == pytest.approx([r.mass for r in records], abs=1e-5)
        assert [s[3] for s in shown] == pytest.approx([r.entropy for r in records], abs=1e-4)
        assert int(page.locator(".gf-sampler").get_attribute("data-drawn")) == draw(
            records[-1].probabilities, u
        )


def test_a_slider_answers_at_once_stands_in_the_link_and_cut_tokens_say_by_which_stage(page, app_url):
    opened(page, app_url, "sampling_top_k=3&sampling_top_p=1")
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


def test_draws_close_in(page, app_url):
    opened(page, app_url, "sampling_view=A+thousand+draws&sampling_seed=2")
    page.get_by_label("Number of draws", exact=True).fill("10")
    page.wait_for_function(
        "JSON.parse(document.querySelector('.gf-sampler').dataset.counts).reduce((a, b) => a + b) === 10"
    )
    far = float(page.locator(".gf-sampler").get_attribute("data-distance"))
    page.get_by_role("button", name="Draw").click()
    page.wait_for_function(
        "JSON.parse(document.querySelector('.gf-sampler').dataset.counts).reduce((a, b) => a + b) === 1000"
    )
    assert float(page.locator(".gf-sampler").get_attribute("data-distance")) < far / 2
