"""How quickly the pages answer: their script on the server, and the whole way in a browser.

    python -m benchmarks.views [--rounds 12] [--page NAME ...]

On the server each page is run as Streamlit runs it for a browser, but without one (streamlit.testing), in
this process: milliseconds of the script, median. `first` is a session's first look at a page, with the model
read before; `again` moves on to another text of 64 tokens, so that nothing of it was computed before; `same`
asks for the same view again. In the browser a small training is run, and the scrubber is moved by the arrow
key: milliseconds from the key to the last change of a picture on the page (`scrub`, median), and from asking
for the page's address to its pictures, with the server warm and the browser's caches empty (`open`). Pages
that read no model have no scrubber.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from benchmarks.report import Goals, finish, table
from tests.browser.server import ARGUMENTS, chromium_path, serve
from ui.site import ROOT, Entry, built

TEXT = (
    "First Citizen:\nBefore we proceed any further, hear me speak.\nAll:\nSpeak.\nFirst Citizen:\nYou are all"
    " resolved rather to die than to famish?\n"
)
LENGTH = 64
# Pages that read a model, each with a view whose picture depends on the training step.
CHANGING = {
    "shapes": "&shapes_step=14",
    "attention": "",
    "residual": "",
    "feedforward": "",
    "embeddings": "&embed_view=The+map",
    "positions": "&positions_view=Learned",
    "sampling": "",
    "generation": "&generation_view=Beam+search",
}
GOALS: Goals = {"slowest.scrub_ms": ("<=", 150.0), "slowest.open_ms": ("<=", 1500.0)}

# Resolves with the milliseconds from a key to the last change of a picture, or -1 when nothing changed within
# a second and a half.
KEY = """() => new Promise((resolve) => {
  let last = -1
  const started = performance.now()
  const inScrubber = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest('.gf-scrubber')
  const inPicture = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest('.gf-figure, .gf-tokens, [class^="gf-"]')
  const observer = new MutationObserver((changes) => {
    if (changes.some((c) => inPicture(c.target) && !inScrubber(c.target))) last = performance.now() - started
  })
  observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true })
  setTimeout(() => { observer.disconnect(); resolve(last) }, 1500)
})"""


def timed(page: AppTest) -> float:
    started = time.perf_counter()
    page.run()
    took = (time.perf_counter() - started) * 1e3
    assert not page.exception, page.exception
    return took


def on_the_server(path: str, view: str, rounds: int) -> dict[str, float]:
    """Milliseconds of one page's script."""
    first = []
    for _ in range(4):
        page = AppTest.from_file(path, default_timeout=60)
        page.query_params.update(
            {
                "text": TEXT[:LENGTH],
                **dict(pair.split("=") for pair in view.replace("+", " ").split("&") if pair),
            }
        )
        first.append(timed(page))
    again, same = [], []
    for turn in range(rounds):
        page.session_state["text"] = TEXT[turn + 1 : turn + 1 + LENGTH]
        again.append(timed(page))
        same.append(timed(page))
    return {
        "first": statistics.median(first[1:]),
        "again": statistics.median(again),
        "same": statistics.median(same),
    }


def settled(page: Any) -> None:
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=60_000)


def train(page: Any, url: str) -> str:
    """The name, in the bar, of a finished run with some snapshots."""
    page.goto(
        f"{url}/train?data=python&steps=24&snapshot_every=2&eval_every=0&sample_every=0&d_model=128&position=learned"
    )
    settled(page)
    page.get_by_role("button", name="Train", exact=True).click()
    page.locator(".st-key-extend_button button:visible").wait_for(timeout=120_000)
    return "run-" + page.url.split("run=")[1].split("&")[0]


def in_a_browser(page: Any, url: str, entry: Entry, run: str, rounds: int) -> dict[str, float]:
    """Milliseconds of one page's first view, and of one step of the scrubber."""
    opened = []
    for _ in range(3):
        started = time.perf_counter()
        page.goto(f"{url}/{entry.url}?model={run}{CHANGING.get(entry.url, '')}")
        page.wait_for_function(
            "[...document.querySelectorAll('.gf-figure .main-svg, canvas')].some((e) => e.checkVisibility())",
            timeout=60_000,
        )
        settled(page)
        opened.append((time.perf_counter() - started) * 1e3)
    if entry.url not in CHANGING:
        return {"open": statistics.median(opened[1:])}
    page.locator(".gf-scrub-track input").focus()
    moves = []
    for _ in range(min(rounds, 11) + 1):
        page.evaluate(f"() => {{ window.__answer = ({KEY})() }}")
        page.keyboard.press("ArrowLeft")
        moves.append(page.evaluate("() => window.__answer"))
    answered = [ms for ms in moves[1:] if ms >= 0]
    return {
        "open": statistics.median(opened[1:]),
        "scrub": statistics.median(answered) if len(answered) > len(moves) // 2 else 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--page", nargs="+", help="addresses, such as attention; all by default")
    options = parser.parse_args()
    os.environ.setdefault("GLASSFORMER_PROFILE", "hosted")
    entries = [
        entry
        for entry in built()
        if entry.section != "Start" and (not options.page or entry.url in options.page)
    ]
    rows: dict[str, dict[str, float]] = {
        entry.title: (
            on_the_server(str(ROOT / entry.path), CHANGING[entry.url], options.rounds)
            if entry.url in CHANGING
            else {}
        )
        for entry in entries
    }
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as home, serve(Path(home)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(playwright), args=list(ARGUMENTS))
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        run = train(page, url)
        for entry in entries:
            rows[entry.title] |= in_a_browser(page, url, entry, run, options.rounds)
        browser.close()
    kinds = ("first", "again", "same", "open", "scrub")
    table(
        [
            {"page": title, **{kind: round(row[kind], 1) if kind in row else "" for kind in kinds}}
            for title, row in rows.items()
        ]
    )
    figures = {
        f"{title.lower().replace(' ', '_')}.{kind}_ms": ms
        for title, row in rows.items()
        for kind, ms in row.items()
    }
    for kind in ("first", "again", "open", "scrub"):
        figures[f"slowest.{kind}_ms"] = max((row[kind] for row in rows.values() if kind in row), default=0.0)
    finish("views", figures, GOALS)


if __name__ == "__main__":
    main()
