"""Seconds of training until a validation loss is reached, by the presets that the app offers.

    python -m benchmarks.time_to_quality [--seeds 3]

Loss is nats per character over the validation split of Tiny Shakespeare, in windows of 64: about 16,000
characters of it on the way, all of it at the end, and only that last one counts as having reached a loss.
Seconds are those of training steps alone, as on the page: evaluation is not counted. nanoGPT's own CPU
recipe, the same sizes and data, publishes 1.88 after 2,000 steps of batch 12: what these take here, with the
same model made of torch's own layers, is measured in the same run, because seconds on one machine say little
about another.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import torch

from benchmarks.peers import EncoderGPT, PlainStep
from benchmarks.report import Goals, finish, table
from engine import corpora
from engine.numerics import choose, keep_memory
from engine.presets import PRESETS
from engine.training.records import Evaluation
from engine.training.train import train

# A schedule decays over its whole budget, so each budget is a training of its own: (steps, loss to reach).
BUDGETS = {"fast": (PRESETS["fast"].train.steps, 1.88), "fast, 600 steps": (600, 1.70)}  # type: ignore[union-attr]
GOALS: Goals = {"fast.seconds_to_1.88": ("<=", 5.0), "fast, 600 steps.seconds_to_1.70": ("<=", 20.0)}


def curve(steps: int, seed: int) -> list[Evaluation]:
    """The evaluations of one training: ten on the way, and the complete one at its end."""
    preset = PRESETS["fast"]
    assert preset.train is not None
    corpus = corpora.load("shakespeare")
    config = replace(
        preset.train, steps=steps, seed=seed, eval_every=max(1, steps // 10), sample_every=0, snapshot_every=0
    )
    return [
        r
        for r in train(replace(preset.model, vocab_size=corpus.vocab_size), config, corpus)
        if isinstance(r, Evaluation)
    ]


NANOGPT_STEPS, NANOGPT_BATCH = 2000, 12  # its README's recipe for a CPU


def peer_seconds(steps: int = 40) -> float:
    """Seconds for the steps of nanoGPT's recipe, from the median of some of them, in float32 as it runs on a
    CPU.
    """
    config = PRESETS["classic"].model
    step = PlainStep(EncoderGPT(config), torch.float32)
    inputs, targets = torch.randint(config.vocab_size, (2, NANOGPT_BATCH, config.context))
    times = []
    for _ in range(steps):
        started = time.perf_counter()
        step(inputs, targets)
        times.append(time.perf_counter() - started)
    return NANOGPT_STEPS * statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    keep_memory()
    print(choose().sentence, f"on {torch.get_num_threads()} threads")
    figures: dict[str, float] = {"nanogpt_recipe.seconds": peer_seconds()}
    for name, (steps, goal) in BUDGETS.items():
        curves = [curve(steps, seed) for seed in range(options.seeds)]
        rows = []
        for points in zip(*curves, strict=True):
            row: dict[str, object] = {
                name: f"step {points[0].step}",
                "seconds": statistics.median(p.seconds for p in points),
            }
            rows.append(row | {f"seed {i}": round(p.validation_loss, 4) for i, p in enumerate(points)})
        table(rows)
        print()
        reached = [
            next((p.seconds for p in points if p.complete and p.validation_loss <= goal), 1e9)
            for points in curves
        ]
        figures[f"{name}.seconds_to_{goal:.2f}"] = statistics.median(reached)
        figures[f"{name}.final_loss"] = statistics.median(points[-1].validation_loss for points in curves)
        figures[f"{name}.seconds"] = statistics.median(points[-1].seconds for points in curves)
    figures["nanogpt_recipe.seconds"] = statistics.median(
        [figures["nanogpt_recipe.seconds"], peer_seconds()]
    )  # before and after
    figures["fast.times_as_fast_as_nanogpt_recipe"] = (
        figures["nanogpt_recipe.seconds"] / figures["fast.seconds_to_1.88"]
    )
    finish("time_to_quality", figures, GOALS)


if __name__ == "__main__":
    main()
