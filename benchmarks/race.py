"""What a race costs beyond the trainings in it, and whether the app still answers while one goes on.

    python -m benchmarks.race [--passes 5] [--steps 60] [--presses 12] [--no-browser]

`cost.cpu`: processor time of four trainings in turns, as a share of that of the same four one after the
other. Passes are interleaved, and the median pass counts.
`press_ms`: from a press on another page to the changed picture, in a browser, with and without a race of four.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.live import presses, settled, windows
from benchmarks.report import Goals, finish, table
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.training.numerics import keep_memory
from engine.training.records import Record
from engine.training.train import train
from runs import profiles
from runs.race import Entrant, race
from tests.browser.server import serve

GOALS: Goals = {"cost.cpu": ("<=", 1.05), "press_ms.with_race": ("<=", 300.0)}
BASE = ModelConfig(vocab_size=65, context=64, d_model=96, n_layers=2, n_heads=4)
MODELS = (BASE, replace(BASE, n_layers=1), replace(BASE, mixer="mean"), replace(BASE, norm="rmsnorm"))
TRAIN = TrainConfig(batch_size=16, eval_every=0, sample_every=0, eval_tokens=4096)


def entrants(corpus: Corpus, steps: int) -> list[Entrant]:
    recipe = replace(TRAIN, steps=steps)
    return [Entrant(replace(model, vocab_size=corpus.vocab_size), recipe, corpus) for model in MODELS]


def one_after_the_other(some: list[Entrant]) -> Iterable[Record]:
    for each in some:
        yield from train(each.model, each.train, each.corpus)


def in_turns(some: list[Entrant]) -> Iterable[Record]:
    return (record for _, record in race(some))


def processor_seconds(how: Callable[[list[Entrant]], Iterable[Record]], some: list[Entrant]) -> float:
    started = time.process_time()
    for _ in how(some):
        pass
    return time.process_time() - started


def cost(passes: int, steps: int) -> dict[str, float]:
    """Shares of the processor time, each in one pass: which of the two comes first changes."""
    corpus = corpora.load(corpora.default_name())
    some = entrants(corpus, steps)
    for how in (one_after_the_other, in_turns):  # the first use of each operation is slow
        processor_seconds(how, entrants(corpus, 3))
    shares = []
    for turn in range(passes):
        order = (one_after_the_other, in_turns)[:: 1 if turn % 2 == 0 else -1]
        spent = {how.__name__: processor_seconds(how, some) for how in order}
        shares.append(spent["in_turns"] / spent["one_after_the_other"])
    return {
        "cost.cpu": statistics.median(shares),
        "cost.cpu_least": min(shares),
        "cost.cpu_most": max(shares),
    }


def latency(count: int) -> dict[str, float]:
    """Milliseconds of a press on Home, without and with a race on the ladder's page."""
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as home,
        serve(Path(home), profile=profiles.current().name) as url,
        sync_playwright() as playwright,
        windows(playwright, 2) as (other, page),
    ):
        other.goto(f"{url}/?home_view=published")
        other.wait_for_selector(".map svg")
        settled(other)
        without = presses(other, count)
        page.goto(f"{url}/ladder?ladder_view=race&ladder_steps=1200")
        settled(page)
        page.locator(".st-key-race_line").get_by_role("button", name="Race", exact=True).click()
        page.wait_for_selector(".st-key-race_line .gf-follow-bar", timeout=60_000)
        page.wait_for_timeout(3000)
        during = presses(other, count)
        page.get_by_role("button", name="Cancel", exact=True).first.click()
    return {"press_ms.without_race": without, "press_ms.with_race": during}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--presses", type=int, default=12)
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    figures = cost(options.passes, options.steps)
    if not options.no_browser:
        figures |= latency(options.presses)
    table([{"figure": name, "value": value} for name, value in figures.items()])
    finish("race", figures, {name: goal for name, goal in GOALS.items() if name in figures})


if __name__ == "__main__":
    main()
