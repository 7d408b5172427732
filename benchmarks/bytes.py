"""What a server sends over the websocket when a page runs again.

    python -m benchmarks.bytes [URL ...]

Without an address it serves this checkout. With several, the first is what the others are compared with: another
checkout's running server, such as one of a commit before. `rerun` is the median of kilobytes that come for one
message of the browser: on Attention another head is chosen in the grid, in Generation the writer goes back to the
prompt and to the end again, so that it is asked where the reader stands. `open` is what comes until the page
stands, and `fetched` what the browser then had to fetch of app/static/ with an empty cache, Plotly's library left
out: that is fetched once and kept.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import finish, table
from tests.browser.server import ARGUMENTS, chromium_path, serve

ROUNDS = 8
QUIET_MS = 900  # after a move: the writer tells where the reader stands once he has rested for half a second
PAGES = {
    "attention": "attention?model=shakespeare-classic",
    "generation": "generation?model=shakespeare-classic&generation_length=40&generation_seed=5",
}


class Wire:
    """Bytes and messages of every websocket of a page, counted from the last `take`."""

    def __init__(self, page: Any) -> None:
        self.received = self.sent = self.fetched = 0
        page.on("websocket", self._listen)
        page.on("response", self._fetched)

    def _listen(self, socket: Any) -> None:
        socket.on("framereceived", self._receive)
        socket.on("framesent", self._send)

    def _receive(self, payload: str | bytes) -> None:
        self.received += len(payload)

    def _send(self, _: str | bytes) -> None:
        self.sent += 1

    def _fetched(self, response: Any) -> None:
        if "/app/static/" in response.url and "plotly" not in response.url:
            self.fetched += int(response.headers.get("content-length", 0))

    def take(self) -> tuple[int, int]:
        """(bytes received, messages sent) since the last time."""
        found = self.received, self.sent
        self.received = self.sent = 0
        return found


def settled(page: Any) -> None:
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=60_000)
    page.wait_for_timeout(QUIET_MS)
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=60_000)


def choose_a_head(page: Any, turn: int) -> None:
    page.locator(".gf-head").nth(turn % 4 + 2).click()  # the second is open at first


def stand_elsewhere(page: Any, turn: int) -> None:
    page.locator(f".gf-writer [data-do={'last' if turn % 2 else 'first'}]").click()


MOVES: dict[str, tuple[str, Callable[[Any, int], None]]] = {
    "attention": (".gf-head", choose_a_head),
    "generation": (".gf-writer-token", stand_elsewhere),
}


def measured(browser: Any, url: str, name: str, rounds: int) -> dict[str, float]:
    """Kilobytes of one page of one server."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True)
    page = context.new_page()
    wire = Wire(page)
    page.goto(f"{url.rstrip('/')}/{PAGES[name]}")
    ready, move = MOVES[name]
    page.locator(ready).first.wait_for(timeout=90_000)
    settled(page)
    if name == "generation":  # all is written before anything is measured
        page.locator(".gf-writer [data-do=last]").click()
        page.wait_for_selector(".gf-writer[data-ended=length]", timeout=90_000)
        settled(page)
    opened, _ = wire.take()
    reruns = []
    for turn in range(rounds):
        move(page, turn)
        settled(page)
        received, sent = wire.take()
        if sent:
            reruns.append(received / sent)
    context.close()
    return {
        "rerun": statistics.median(reruns) / 1e3,
        "open": opened / 1e3,
        "fetched": wire.fetched / 1e3,
    }


@contextmanager
def addresses(given: list[str]) -> Iterator[list[str]]:
    with ExitStack() as stack:
        if not given:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            given = [stack.enter_context(serve(home))]
        yield given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="*", help="running servers, such as http://localhost:8501")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="moves on each page")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    rows: list[dict[str, object]] = []
    figures: dict[str, float] = {}
    with addresses(options.urls) as urls, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(playwright), args=list(ARGUMENTS))
        for name in PAGES:
            found = [measured(browser, url, name, options.rounds) for url in urls]
            for number, (url, row) in enumerate(zip(urls, found, strict=True)):
                kilobytes = {f"{kind} kB": round(value, 1) for kind, value in row.items()}
                ratio = {"rerun ratio": round(row["rerun"] / found[0]["rerun"], 3)}
                rows.append({"page": name, "server": url, **kilobytes, **ratio})
                figures |= {f"{name}.{number}.{kind}_kb": value for kind, value in row.items()}
        browser.close()
    table(rows)
    finish("bytes", figures, {})


if __name__ == "__main__":
    main()
