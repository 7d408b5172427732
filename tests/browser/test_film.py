"""The film of a view in a real Chromium: a video that goes through the training, and the view as it was before."""

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import settled
from tests.browser.scrubbing import where

pytestmark = pytest.mark.exhaustive

SLOW = 240_000
# Two pictures of a video, as small grey ones: its first, and its last.
ENDS = """async (address) => {
  const video = Object.assign(document.createElement("video"), { src: address, muted: true })
  const at = async (time) => {
    const came = new Promise((done) => { video.onseeked = done })
    video.currentTime = time
    await came
    const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 36 }), pen = canvas.getContext("2d")
    pen.drawImage(video, 0, 0, 64, 36)
    return Array.from(pen.getImageData(0, 0, 64, 36).data.filter((_, i) => i % 4 === 0))
  }
  await new Promise((done, failed) => { video.onloadeddata = done; video.onerror = () => failed(video.error.message) })
  const first = await at(0), last = await at(1e6)
  return [video.videoWidth, video.videoHeight, video.currentTime, first, last]
}"""


def test_a_view_is_filmed_through_the_training_and_is_then_as_it_was(
    page: Page, app_url: str, tmp_path: Path
) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{app_url}/circuits?circuits_view=induction&model=timelapse&step=330")
    page.locator(".gf-scrubber input[type=range]").wait_for(timeout=SLOW)
    settled(page, SLOW)
    button = page.locator(".gf-scrub-film")
    with page.expect_download(timeout=SLOW) as coming:
        button.click()
        expect(button).to_have_text(re.compile(r"Stop · 12/36"), timeout=SLOW)
        assert where(page) != "step 330 · head 1.3 copies"
    coming.value.save_as(tmp_path / "film")
    assert coming.value.suggested_filename.startswith("film-circuits-timelapse.")
    expect(button).to_have_text("Film")
    page.wait_for_function("new URL(location).searchParams.get('step') === '330'", timeout=SLOW)
    assert where(page) == "step 330 · head 1.3 copies"

    data = base64.b64encode((tmp_path / "film").read_bytes()).decode()
    page.goto("about:blank")
    kind = "mp4" if coming.value.suggested_filename.endswith("mp4") else "webm"
    width, height, seconds, first, last = page.evaluate(ENDS, f"data:video/{kind};base64,{data}")
    assert 900 < width <= 1280 and height > 300
    assert 9 < seconds < 40, "36 moments, of which each stands a while"
    assert sum(abs(a - b) > 25 for a, b in zip(first, last, strict=True)) > 20, "another picture at the end"
    assert len(set(last)) > 10, "not an empty one"
