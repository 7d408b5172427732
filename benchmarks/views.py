"""How quickly the pages answer: their script on the server, and the whole way in a browser.

    python -m benchmarks.views [--rounds 12] [--page NAME ...]

On the server each page is run as Streamlit runs it for a browser, but without one (streamlit.testing), in
this process: milliseconds of the script, median. `first` is a session's first look at a page, with the model
read before; `again` moves on to another text of 64 tokens, so that nothing of it was computed before; `same`
asks for the same view again. In the browser a small training is run, and the scrubber is moved by the arrow
key: milliseconds from the key to the last change of a picture on the page (`scrub`, median), and from asking
for the page's address to its pictures, with the server warm and the browser's caches empty (`open`). Pages
that read no model have no scrubber.

Home's running map is measured with a small model and, where it is installed, the real one: milliseconds to
its first bars (`first`, and `cold` for the first visit with that model, which the server reads then), from a
key to the bars of another text (`key`) and of a text with a letter more (`letter`), from *Write* to the bars
behind the written token (`write`); bytes received for a written token (`bytes`), all its depths among them;
pictures a second while the block slider moves without pause (`pictures`).
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
from studies.weights.pretrained import sources
from tests.browser.server import ARGUMENTS, chromium_path, serve
from ui.models import FIRST_MODEL, PRETRAINED, REAL_MODEL
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
    "embeddings": "&embed_view=map",
    "positions": "&positions_view=learned",
    "sampling": "",
    "generation": "&generation_view=beam",
}
GOALS: Goals = {
    "slowest.scrub_ms": ("<=", 150.0),
    "slowest.open_ms": ("<=", 1500.0),
    "home.first_ms": ("<=", 2000.0),
    "home.key_ms": ("<=", 250.0),
    "home.bytes": ("<=", 300_000.0),
    "home_real.cold_ms": ("<=", 1500.0),
    "home_real.first_ms": ("<=", 1500.0),
    "home_real.key_ms": ("<=", 250.0),
    "home_real.letter_ms": ("<=", 250.0),
    "home_real.bytes": ("<=", 600_000.0),
}
BEGINNINGS = ("The king is", "O what a day", "She went to", "Never again", "My lord of", "Where is the")
BARS = "document.querySelectorAll('.gf-live-bars button').length > 0"
WHOLE = "document.querySelector('.gf-live').dataset.whole === 'true'"
ANSWERED = "(last) => document.querySelector('.gf-live').dataset.answered !== last"

# Pictures a second while the block slider moves at every one of sixty frames.
PICTURES = """async () => {
  const root = document.querySelector('.gf-live'), range = root.querySelector('input[data-name=depth]')
  const before = Number(root.dataset.frames), started = performance.now()
  for (let turn = 0; turn < 60; turn++) {
    range.value = String(turn % (Number(range.max) + 1))
    range.dispatchEvent(new Event('input'))
    await new Promise(requestAnimationFrame)
  }
  return (Number(root.dataset.frames) - before) / ((performance.now() - started) / 1000)
}"""

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


def running_map(page: Any, url: str, model: str, rounds: int) -> dict[str, float]:
    """Home's map with one model, in a browser."""
    received: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda sent: received.append(len(sent))))

    def answered(act: Any) -> float:
        last = page.locator(".gf-live").get_attribute("data-answered")
        started = time.perf_counter()
        act()
        page.wait_for_function(ANSWERED, arg=last, polling=5, timeout=60_000)
        took = (time.perf_counter() - started) * 1e3
        settled(page)
        page.wait_for_function(WHOLE)  # what a large model says elsewhere follows
        return took

    first = []
    for _ in range(3):
        started = time.perf_counter()
        page.goto(f"{url}/?model={model}")
        page.wait_for_function(BARS, timeout=120_000)
        first.append((time.perf_counter() - started) * 1e3)
        settled(page)
    page.wait_for_timeout(1500)
    box = page.locator(".gf-live-type input")
    texts = [
        BEGINNINGS[turn % len(BEGINNINGS)] + " and" * (turn // len(BEGINNINGS)) for turn in range(rounds)
    ]
    keys = [answered(lambda text=text: box.fill(text)) for text in texts]
    box.focus()
    letters = [answered(lambda turn=turn: page.keyboard.type(" king"[turn % 5])) for turn in range(rounds)]
    write = page.get_by_role("button", name="Write", exact=True)
    writes, sizes = [], []
    for _ in range(rounds):
        received.clear()
        writes.append(answered(write.click))
        sizes.append(sum(received))
    return {
        "cold_ms": first[0],
        "first_ms": statistics.median(first[1:]),
        "key_ms": statistics.median(keys),
        "letter_ms": statistics.median(letters),
        "write_ms": statistics.median(writes),
        "bytes": statistics.median(sizes),
        "pictures": page.evaluate(PICTURES),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--page", nargs="+", help="addresses, such as attention, or home; all by default")
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
        page = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
        run = train(page, url) if entries else ""
        for entry in entries:
            rows[entry.title] |= in_a_browser(page, url, entry, run, options.rounds)
        maps: dict[str, dict[str, float]] = {}
        if not options.page or "home" in options.page:
            maps["home"] = running_map(page, url, FIRST_MODEL, options.rounds)
        if maps and sources.find(REAL_MODEL.removeprefix(PRETRAINED)) is not None:
            maps["home_real"] = running_map(page, url, REAL_MODEL, options.rounds)
        browser.close()
    kinds = ("first", "again", "same", "open", "scrub")
    for found in (
        [
            {"page": title, **{kind: round(row[kind], 1) if kind in row else "" for kind in kinds}}
            for title, row in rows.items()
        ],
        [{"map": name, **{kind: round(v, 1) for kind, v in row.items()}} for name, row in maps.items()],
    ):
        if found:
            table(found)
    figures = {f"{name}.{kind}": value for name, row in maps.items() for kind, value in row.items()} | {
        f"{title.lower().replace(' ', '_')}.{kind}_ms": ms
        for title, row in rows.items()
        for kind, ms in row.items()
    }
    for kind in ("first", "again", "open", "scrub") if rows else ():
        figures[f"slowest.{kind}_ms"] = max((row[kind] for row in rows.values() if kind in row), default=0.0)
    finish("views", figures, {goal: bound for goal, bound in GOALS.items() if goal in figures})


if __name__ == "__main__":
    main()
