"""Pairs on Train, as a person finds them: chosen in the settings, trained, and looked into."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import settled
from tests.browser.test_train import SLOW, button, ended, opened, settings, steps_done, wait_for_steps


def test_pairs_are_chosen_learned_and_looked_into(page: Page, app_url: str):
    opened(page, app_url, "/train")
    settings(page)
    drawer = page.get_by_test_id("stPopoverBody")
    drawer.get_by_text("Data", exact=True).click()
    drawer.get_by_role("radio", name="pairs").click()
    drawer.get_by_role("radio", name="Reverse").click()
    expect(page.get_by_role("heading", name="Reverse: when can it do it alone?")).to_be_visible(timeout=SLOW)
    expect(drawer.get_by_text("Shakespeare in 220 steps")).to_have_count(0)
    page.keyboard.press("Escape")
    button(page, "Train").click()
    wait_for_steps(page, 12)
    button(page, "Stop").click()
    ended(page)
    steps = steps_done(page)
    answer = page.locator(".st-key-answer", has_text="of the targets that it never saw").first
    loss = float(
        re.search(rf"After {steps:,} steps .* Its loss is ([\d.]+) nats", answer.inner_text(), re.S)[1]
    )
    legend = page.locator(".gf-figure .legendtext", has_text="reverse").first.text_content()
    assert legend == f"reverse {loss:.2f}"
    title = page.locator(".gf-samples-bar output")
    assert title.evaluate("node => node.scrollWidth <= node.parentElement.clientWidth + 1")
    expect(page.locator(".gf-samples pre").first).to_contain_text("←")
    button(page, "Look inside").click()
    page.get_by_test_id("stPopoverBody").get_by_role("link", name="Cross-attention").click()
    page.wait_for_url("**/crossattention?**", timeout=SLOW)
    settled(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_text(f"step {steps:,}").first).to_be_visible(timeout=SLOW)
