"""Processor seconds of a training step with experts, beside the dense twin of equal active size, interleaved.

    python -m benchmarks.experts [--rounds 20]

The models of *Feed-forward > Experts*: 8 experts of which a token meets 2, and a shared one, beside one
network as wide as three. Not the clock's seconds: other work on the machine counts less.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch

from benchmarks.report import Goals, finish, table
from engine.config import TrainConfig
from engine.data.corpora import from_text
from engine.training.records import Record, Step
from engine.training.train import train
from studies.experiments.expert_runs import DENSE, KINDS, TRAINING, model_of

GOALS: Goals = {f"{kind}_beside_dense": ("<=", 1.5) for kind in KINDS}
WARM = 5  # steps before the first that counts: shapes are met for the first time


def stepper(kind: str, config: TrainConfig) -> Callable[[], None]:
    text = "".join(map(chr, np.random.default_rng(0).integers(33, 98, 70_000)))  # of 65 characters
    records: Iterator[Record] = train(model_of(kind), config, from_text(text, "noise"), device="cpu")

    def step() -> None:
        while not isinstance(next(records), Step):
            pass

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = replace(TRAINING, steps=10_000, eval_every=0, snapshot_every=0, eval_tokens=256)
    steps = {kind: stepper(kind, config) for kind in (*KINDS, DENSE)}
    seconds: dict[str, list[float]] = {kind: [] for kind in steps}
    for turn in range(options.rounds + WARM):
        for kind, step in steps.items():
            started = time.process_time()
            step()
            if turn >= WARM:
                seconds[kind].append(time.process_time() - started)
    ratios = {
        f"{kind}_beside_dense": statistics.median(
            a / b for a, b in zip(seconds[kind], seconds[DENSE], strict=True)
        )
        for kind in KINDS
    }
    table([{"who": kind, "ms": statistics.median(times) * 1e3} for kind, times in seconds.items()])
    finish("experts", ratios, GOALS)


if __name__ == "__main__":
    main()
