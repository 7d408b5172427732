"""The real model answers in a real Chromium: as a conversation, streamed, to its own end."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settled
from tests.pages.real import REAL, carried

pytestmark = [carried, pytest.mark.exhaustive]
SLOW_MS = 120_000  # its weights are read for the first time in this home folder


def test_a_question_is_answered_to_its_end(page, app_url):
    page.goto(
        f"{app_url}/generation?model={REAL}&text=What+is+the+capital+of+France%3F&generation_chat=true"
        "&generation_temperature=0"
    )
    said = page.locator(".gf-writer-said")
    expect(said).to_contain_text("The model says that it is finished", timeout=SLOW_MS)
    settled(page)
    text = page.locator(".gf-writer-text")
    expect(text).to_contain_text("<|im_start|>assistant")
    expect(text).to_contain_text("Paris")
    assert "generation_chat" in page.url
