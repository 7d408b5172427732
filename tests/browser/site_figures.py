"""The working figures of a built site in a browser: `python -m tests.browser.site_figures FOLDER` says what is wrong."""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, sync_playwright

from tests.browser.server import ARGUMENTS, chromium_path

WIDTHS = (1280, 390)
PATIENCE_MS = 60_000
# Of a frame: it is drawn, with its charts, and it is as high as what it shows.
DRAWN = """() => {
  const frame = document.querySelector('iframe.live'), inside = frame?.contentDocument
  return inside?.documentElement?.dataset.gfSaved === 'drawn' && inside.body && Math.abs(frame.clientHeight - inside.body.scrollHeight) < 2
    && [...inside.querySelectorAll('.gf-figure')].every((chart) => chart.clientHeight === 0 || chart.querySelector('.main-svg'))
}"""
WIDER = "() => document.querySelector('iframe.live').contentDocument.documentElement.scrollWidth - innerWidth"
SAID = "() => document.querySelector('iframe.live').contentDocument.querySelector('.gf-answer')?.innerText"
MOVED = """() => {
  const slider = document.querySelector('iframe.live').contentDocument.querySelector('.gf-live-depth input[type=range]')
  return slider && slider.value === slider.max
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def hosted(site: Path) -> Iterator[str]:
    """The site on a static host, which knows of no server of ours: its address."""
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def faults(site: Path, page: Any, root: str) -> list[str]:
    """What is wrong with the figures of the site, as its reader meets them."""
    wrong: list[str] = []
    page.on("console", lambda line: line.type == "error" and wrong.append(f"{page.url}: {line.text}"))
    page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
    page.on(
        "request", lambda asked: outside(asked.url, root) and wrong.append(f"{page.url} asks {asked.url}")
    )
    live = [path for path in sorted(site.rglob("index.html")) if 'class="live"' in path.read_text("utf-8")]
    for path in live:
        address = f"{root}/{path.parent.relative_to(site).as_posix()}/"
        try:
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 844})
                page.goto(address)
                page.locator("iframe.live").scroll_into_view_if_needed()
                page.wait_for_function(DRAWN, timeout=PATIENCE_MS)
                if (wide := page.evaluate(WIDER)) > 0:
                    wrong.append(f"{address}: {wide} pixels wider than a screen of {width}")
            wrong += [f"{address}: {what}" for what in unchosen(page)]
        except Error as error:
            wrong.append(f"{address}: {error.message.splitlines()[0]}")
    page.goto(root)
    page.wait_for_function(MOVED, timeout=PATIENCE_MS)
    return wrong if len(live) > 60 else [*wrong, f"only {len(live)} pages have a working figure"]


def unchosen(page: Any) -> Iterator[str]:
    """The figures of a list that cannot be chosen, or say what another says."""
    choice, said = page.locator(".live-choice select"), set[str]()
    if not choice.count():
        return
    options = choice.locator("option")
    for i in range(options.count()):
        choice.select_option(index=i)
        address = options.nth(i).get_attribute("value").rpartition("/")[2]
        page.wait_for_function(
            "address => document.querySelector('iframe.live').contentDocument?.URL.endsWith(address)",
            arg=address,
        )
        page.wait_for_function(DRAWN, timeout=PATIENCE_MS)
        if (answer := page.evaluate(SAID)) in said:
            yield f"{address} says what another does: {answer}"
        said.add(answer)


def outside(url: str, root: str) -> bool:
    return not url.startswith((root, "data:", "blob:"))


def main() -> None:
    site = Path(sys.argv[1])
    with sync_playwright() as playwright, hosted(site) as root:
        path = chromium_path(playwright)
        if path is None:
            return
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        wrong = faults(site, browser.new_page(), root)
        browser.close()
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
