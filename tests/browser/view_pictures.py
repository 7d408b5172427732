"""The pictures of the views, taken from the running app for `make docs`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, Playwright, sync_playwright

from docs.site.facts import PICTURES, ROOT, Facts, read
from docs.site.live import figure
from tests.browser.conftest import after_frames, settled
from tests.browser.server import ARGUMENTS, chromium_path, serve

SIZE = {"width": 1280, "height": 720}
QUALITY = 80  # of WebP: about 30 KB a picture


def take(page: Page, address: str, path: Path) -> None:
    """Saves the view at an address as it stands once all of it is drawn."""
    page.goto(address)
    page.wait_for_selector("h2")
    settled(page)
    page.mouse.move(5, 5)
    after_frames(page, 30)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(page.screenshot(animations="disabled"))).save(path, quality=QUALITY)


def main() -> None:
    """Takes a picture of every view in .site/views.json that has no working figure; none where there is no browser."""
    views = [view for view in read() if not figure(view, "")]
    with sync_playwright() as playwright:
        path = chromium_path(playwright)
        if path is None:
            sys.stdout.write(
                "Note: no browser is here (`make chromium`), so no pictures of the views are taken.\n"
            )
            return
        with tempfile.TemporaryDirectory() as folder, serve(Path(folder), profile="local") as url:
            take_all(playwright, path, url, views)
    sys.stdout.write(
        f"Pictures of {len(views)} view{'s' * (len(views) != 1)} are in {PICTURES.relative_to(ROOT)}.\n"
    )


def take_all(playwright: Playwright, path: str, url: str, views: list[Facts]) -> None:
    """Saves a picture of each view of the app at `url`, with the browser at `path`."""
    browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
    try:
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(300_000)
        for view in views:
            take(page, f"{url}/{view.address}", PICTURES / f"{view.name}.webp")
    finally:
        browser.close()


if __name__ == "__main__":
    main()
