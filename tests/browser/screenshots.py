"""The pictures of the README, taken from the running app: `make screenshots`.

`docs/home.webp` moves: Home while the depth at which the model is read goes from the embedding to the last
block. `docs/train.png` is a run after its end, `docs/attention.png` a time-lapse halfway, `docs/circuits.png` the
first experiment of Circuits.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import after_frames, settled
from tests.browser.server import ARGUMENTS, ROOT, chromium_path, serve
from tests.browser.training import ended

DOCS = ROOT / "docs"
SIZE = {"width": 1280, "height": 720}
HALF = (960, 540)  # pixels of the moving picture
MOMENT, LAST = 220, 2000  # milliseconds that a frame stands, and that the last one does
MOST = 3_000_000  # bytes of the moving picture
TRAIN = "/train?preset=fast&steps=400"
ATTENTION = "/attention?attention_view=heads&model=timelapse&step=330"
CIRCUITS = "/circuits"
DEPTH = """(value) => {
  const input = document.querySelector('.gf-live-depth input')
  input.value = value
  input.dispatchEvent(new Event('input', { bubbles: true }))
}"""


def _shot(page: Page) -> bytes:
    return page.screenshot(animations="disabled")


def home(page: Page, url: str) -> None:
    """Saves Home, read at every depth."""
    page.goto(url)
    page.locator(".gf-live-bars button").first.wait_for()
    settled(page)
    deepest = int(page.locator(".gf-live-depth input").get_attribute("max") or 0)
    frames = []
    for depth in range(deepest + 1):
        page.evaluate(DEPTH, str(depth))
        after_frames(page, 20)
        frames.append(
            Image.open(io.BytesIO(_shot(page))).convert("RGB").resize(HALF, Image.Resampling.LANCZOS)
        )
    path = DOCS / "home.webp"
    stand = [MOMENT] * (len(frames) - 1) + [LAST]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=stand, loop=0, quality=70, method=6
    )
    if path.stat().st_size > MOST:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes: more than {MOST:,}.")


def train(page: Page, url: str) -> None:
    """Saves a run of the preset *fast* after its end."""
    page.goto(url + TRAIN)
    page.get_by_role("button", name="Train", exact=True).click()
    ended(page)
    _save(page, "train.png")


def attention(page: Page, url: str) -> None:
    """Saves all heads at a step at which some of them copy."""
    page.goto(url + ATTENTION)
    page.locator(".gf-scrubber").wait_for()
    settled(page)
    _save(page, "attention.png")


def circuits(page: Page, url: str) -> None:
    """Saves what each position and layer of a real model contributes to an answer."""
    page.goto(url + CIRCUITS)
    page.locator(".gf-plot, .js-plotly-plot, canvas").first.wait_for()
    settled(page)
    _save(page, "circuits.png")


def _save(page: Page, name: str) -> None:
    page.mouse.move(5, 5)
    after_frames(page, 30)
    picture: Any = Image.open(io.BytesIO(_shot(page))).convert("RGB").quantize(256)
    picture.save(DOCS / name, optimize=True)


def main() -> None:
    """Takes all of them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder), profile="local") as url,
        sync_playwright() as playwright,
    ):
        path = chromium_path(playwright)
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(300_000)
        for take in (home, train, attention, circuits):
            take(page, url)
        browser.close()
    print("docs/home.webp and docs/train.png, attention.png and circuits.png are new.")  # noqa: T201


if __name__ == "__main__":
    main()
