"""A training and the people who look at pages, on the same machine: does either slow the other?

    python -m benchmarks.live [--presses 12]

Steps per second of a run nobody looks at, of one whose page is open, and of one whose page is open while
somebody presses buttons on another page; and how long such a press takes to change the picture, with and
without a run. A press is timed in the browser, from the event to the change of the drawing (median).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.report import Goals, finish, table
from engine.data import corpora
from runs import profiles
from runs.manager import RunManager, RunSpec
from studies.costs.presets import PRESETS
from tests.browser.server import ARGUMENTS, chromium_path, serve

STEPS = 5_000  # more than any measurement here needs, and what the hosted profile allows
GOALS: Goals = {"press_ms.with_run": ("<=", 150.0), "speed.page_open": (">=", 0.85)}

OPTION = '[role="listbox"][aria-label="Model"] [role="option"]'  # of the list of published models, opened
# Resolves with the milliseconds from a click on one of `options` to the first change of what `watched` selects,
# in whatever shadow root it lies; rejects after a minute without one.
PRESS = """([options, at, watched]) => new Promise((resolve, reject) => {
  const label = () => {
    const roots = [document, ...[...document.querySelectorAll("*")].map((node) => node.shadowRoot).filter(Boolean)]
    return roots.map((root) => root.querySelector(watched)).find(Boolean)?.getAttribute("aria-label")
  }
  const before = label()
  const started = performance.now()
  const look = () => {
    const now = label()
    if (now && now !== before) resolve(performance.now() - started)
    else if (performance.now() - started > 60000) reject(new Error(`nothing changed: ${before}`))
    else requestAnimationFrame(look)
  }
  document.querySelectorAll(options)[at].click()
  requestAnimationFrame(look)
})"""


def unwatched_rate(corpus: str) -> float:
    """Steps per second of the `fast` preset with more steps, in a worker process, with no server beside
    it.
    """
    preset = PRESETS["fast"]
    assert preset.train is not None
    train = replace(preset.train, steps=STEPS)
    manager = RunManager(profiles.current())
    try:
        model = replace(preset.model, vocab_size=corpora.load(corpus).vocab_size)
        run = manager.start(RunSpec(model, train, corpus, None), "benchmark")

        def step() -> int:
            manager.watch(run)
            view = manager.view(run)
            return view.step if view else 0

        return rate(step)
    finally:
        manager.close()


def rate(step: Callable[[], int], seconds: float = 8.0) -> float:
    """Steps per second over some seconds, once the first steps are behind."""
    while step() < 20:
        time.sleep(0.1)
    first, started = step(), time.perf_counter()
    while time.perf_counter() - started < seconds:
        time.sleep(0.25)
    return (step() - first) / (time.perf_counter() - started)


@contextmanager
def windows(playwright: Any, count: int) -> Iterator[list[Any]]:
    """Pages that are all in front, each in a browser of its own: in a tab behind another one Chromium draws
    about once a second, and a press there would be timed by that clock.
    """
    with ExitStack() as opened:
        path = chromium_path(playwright)
        found = [playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS)) for _ in range(count)]
        for browser in found:
            opened.callback(browser.close)
        yield [
            browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True) for browser in found
        ]


def settled(page: Any) -> None:
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=60_000)


def presses(page: Any, count: int) -> float:
    """Median milliseconds from choosing another published model on Home to the redrawn map."""
    times = []
    for turn in range(count + 2):
        page.wait_for_timeout(400)
        page.locator(".st-key-preset input").click()
        page.wait_for_selector(OPTION)
        # Four models in turn, so that nothing on the server has the answer ready more than a user's would.
        times.append(page.evaluate(PRESS, [OPTION, 1 + turn % 4, ".map svg"]))
    return statistics.median(times[2:])


def shown_step(page: Any) -> int:
    """The step that the run panel shows."""
    text = page.locator(".st-key-run_panel .gf-follow").first.inner_text()
    return int(text.split("step ")[1].split(" of")[0].replace(",", "")) if "step " in text else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presses", type=int, default=12)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    corpus = corpora.default_name()
    figures = {"steps_per_second.unwatched": unwatched_rate(corpus)}
    with (
        tempfile.TemporaryDirectory() as home,
        serve(Path(home), profile=profiles.current().name) as url,
        sync_playwright() as playwright,
        windows(playwright, 2) as (other, panel),
    ):
        other.goto(f"{url}/?home_view=published")
        other.wait_for_selector(".map svg")
        settled(other)
        figures["press_ms.without_run"] = presses(other, options.presses)
        panel.goto(f"{url}/train?preset=fast&steps={STEPS}")
        settled(panel)
        panel.get_by_role("button", name="Train", exact=True).click()
        panel.wait_for_selector(".st-key-run_panel .gf-follow-bar")
        figures["steps_per_second.page_open"] = rate(lambda: shown_step(panel))
        started = time.perf_counter(), shown_step(panel)
        figures["press_ms.with_run"] = presses(other, options.presses)
        figures["steps_per_second.page_open_and_presses"] = (shown_step(panel) - started[1]) / (
            time.perf_counter() - started[0]
        )
        panel.get_by_role("button", name="Stop", exact=True).click()
    alone = figures["steps_per_second.unwatched"]
    figures["speed.page_open"] = figures["steps_per_second.page_open"] / alone
    figures["speed.page_open_and_presses"] = figures["steps_per_second.page_open_and_presses"] / alone
    table([{"figure": name, "value": value} for name, value in figures.items()])
    finish("live", figures, GOALS)


if __name__ == "__main__":
    main()
