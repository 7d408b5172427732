"""What a step of the scrubber costs, by view: wall time, and the processor's time of the server and of the page.

    python -m benchmarks.scrub [--view attention/heads ...] [--steps 8]

Each view looks into the time-lapse that ships, in a real Chromium. The arrow key goes back so many steps and comes
forward again: `first` are the steps that nobody has seen before, `again` the same ones on the way back. Milliseconds,
medians: `picture` from the key to the end of the first changes of a picture, `wall` to its last change, which is the
page's where that follows once the hand rests (ui/frames.py); `server` of the server's process; `browser` of the page's
main thread (scripts, styles, layout and paint). Views without a scrubber are left out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from benchmarks.load import Operator, server
from benchmarks.report import Goals, finish, table
from benchmarks.views import settled
from tests.browser.server import ARGUMENTS, chromium_path
from ui.page_frame import Listed
from ui.views import views

MODEL = "timelapse"
SCRUBBER = ".gf-scrub-track input"
DRAWN = 5_000  # milliseconds in which a view that stands has drawn its scrubber
PARTS = ("picture", "wall", "server", "browser")
# Milliseconds from now to the end of the first changes (then nothing changes for `pause`) and to the last one; -1 for none.
CHANGES = """pause => new Promise((resolve) => {
  let first = -1, last = -1, over = false
  const started = performance.now()
  const part = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest('[data-gf-part]')
  const observer = new MutationObserver((changes) => {
    if (!changes.some(({ target }) => part(target) && !part(target).matches('.gf-scrubber'))) return
    const now = performance.now() - started
    over ||= last >= 0 && now - last > pause
    last = now
    if (!over) first = now
  })
  observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true })
  setTimeout(() => { observer.disconnect(); resolve([first, last]) }, 1500)
})"""
PAUSE = 100.0
GOALS: Goals = {"slowest.again.picture_ms": ("<=", 150.0)}


def main_thread(client: Any) -> float:
    """Returns the seconds that the page's main thread has worked, by the clock of that thread."""
    metrics = client.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def rest(operator: Operator) -> None:
    """Waits, for half a minute at most, until the server works no more on what was opened."""
    for _ in range(60):
        before = operator.worked()
        time.sleep(0.5)
        if operator.worked() - before < 0.02:
            return


def step(page: Any, client: Any, operator: Operator, key: str) -> dict[str, float] | None:
    """Presses a key on the scrubber. Milliseconds; None where no picture changed."""
    page.evaluate(f"() => {{ window.__answer = ({CHANGES})({PAUSE}) }}")
    worked, busy = operator.worked(), main_thread(client)
    page.keyboard.press(key)
    picture, wall = page.evaluate("() => window.__answer")
    spent = {
        "picture": picture,
        "wall": wall,
        "server": (operator.worked() - worked) * 1e3,
        "browser": (main_thread(client) - busy) * 1e3,
    }
    return spent if wall >= 0 else None


def scrubbed(
    page: Any, client: Any, operator: Operator, url: str, view: Listed, steps: int
) -> dict[str, float]:
    """Milliseconds of the steps of one view, by `first.wall` and so on; nothing where it has no scrubber."""
    from playwright.sync_api import TimeoutError

    address = view.address()
    page.goto(f"{url}/{address}{'&' if '?' in address else '?'}model={MODEL}")
    settled(page)
    try:
        page.locator(SCRUBBER).first.focus(timeout=DRAWN)
    except TimeoutError:
        return {}
    rest(operator)
    result = {}
    for name, key in (("first", "ArrowLeft"), ("again", "ArrowRight")):
        answered = [spent for _ in range(steps) if (spent := step(page, client, operator, key))]
        for part in answered[0] if answered else ():
            result[f"{name}.{part}"] = statistics.median(spent[part] for spent in answered)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--view", nargs="+", help="such as attention/heads, or attention for all of a page")
    parser.add_argument("--steps", type=int, default=8)
    given = parser.parse_args()
    chosen = [view for view in views() if not given.view or {view.id, view.entry.url} & {*given.view}]
    from playwright.sync_api import sync_playwright

    found: dict[str, dict[str, float]] = {}
    with server("hosted") as (url, operator, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(playwright), args=list(ARGUMENTS))
        page = browser.new_context(viewport={"width": 1280, "height": 800}, bypass_csp=True).new_page()
        client = page.context.new_cdp_session(page)
        client.send("Performance.enable", {"timeDomain": "threadTicks"})
        for view in chosen:
            if spent := scrubbed(page, client, operator, url, view, given.steps):
                found[view.id] = spent
        browser.close()
    kinds = [f"{name}.{part}" for name in ("first", "again") for part in PARTS]
    rows = [
        {"view": name, **{kind: round(row.get(kind, 0.0), 1) for kind in kinds}}
        for name, row in found.items()
    ]
    if rows:
        table(rows)
    figures = {f"{name}.{kind}_ms": value for name, row in found.items() for kind, value in row.items()}
    for kind in kinds if rows else ():
        values = [row[kind] for row in found.values() if kind in row]
        figures[f"median.{kind}_ms"] = statistics.median(values)
        figures[f"slowest.{kind}_ms"] = max(values)
    finish("scrub", figures, {goal: bound for goal, bound in GOALS.items() if goal in figures})


if __name__ == "__main__":
    main()
