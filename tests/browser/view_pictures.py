"""The pictures of the views, taken from the running app: `make docs-pictures`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from docs.site.facts import PICTURES, ROOT, read
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
    """Takes a picture of every view in .site/views.json."""
    views = read()
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder), profile="local") as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium_path(playwright), args=list(ARGUMENTS))
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(300_000)
        for view in views:
            take(page, f"{url}/{view.address}", PICTURES / f"{view.name}.webp")
        browser.close()
    sys.stdout.write(f"{len(views)} pictures are in {PICTURES.relative_to(ROOT)}.\n")


if __name__ == "__main__":
    main()
