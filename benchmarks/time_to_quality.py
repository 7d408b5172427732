"""Seconds of training until a validation loss is reached, beside those of nanoGPT's own recipe for a CPU.

    python -m benchmarks.time_to_quality [--seeds 3] [--precision auto]

Loss is nats per character over the validation split of Tiny Shakespeare, in windows of 64: about 16,000
characters of it on the way, all of it at the end, and only that last one counts as having reached a loss.
Seconds are those of training steps alone, as on the page: evaluation is not counted. nanoGPT's recipe, the same
data, publishes 1.88 after 2,000 steps of batch 12: what these take here, with the same model made of torch's own
layers and in float32, as it trains on a CPU, is measured between our trainings, because seconds on one machine
say little about another. The goal is the ratio of the two.

Ours is in the arithmetic that the app would choose (`--precision auto`: bfloat16 where it is faster than float32),
which is said in the first line and in the names of the figures. What an older processor would do a newer one can
tell, told to use neither AVX-512 nor bfloat16:

    ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 \\
        python -m benchmarks.time_to_quality --precision float32
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from typing import cast

import torch

from benchmarks.peers import EncoderGPT, PlainStep
from benchmarks.recipes import NANOGPT_BATCH, NANOGPT_STEPS
from benchmarks.report import Goals, finish, table
from engine.config import Precision, TrainConfig
from engine.data import corpora
from engine.training.numerics import choose, gains_by_bfloat16, keep_memory
from engine.training.records import Evaluation
from engine.training.train import train
from studies.costs.presets import PRESETS

PRESET = PRESETS["fast"]
TRAIN = cast(TrainConfig, PRESET.train)
# A schedule decays over its whole budget, so each budget is a training of its own.
BUDGETS = {"fast": TRAIN.steps, "fast, 600 steps": 600}
LOSS = 1.88  # what nanoGPT's recipe publishes; the least that "fast" is to reach
TIMES = 8  # as fast as that recipe: the least that is wanted of it, in either arithmetic
PEER_STEPS = 40


def curve(steps: int, seed: int, precision: Precision) -> list[Evaluation]:
    """The evaluations of one training: ten on the way, and the complete one at its end."""
    corpus = corpora.load("shakespeare")
    config = replace(
        TRAIN,
        steps=steps,
        seed=seed,
        precision=precision,
        eval_every=max(1, steps // 10),
        look_early=False,
        sample_every=0,
        snapshot_every=0,
    )
    model = replace(PRESET.model, vocab_size=corpus.vocab_size)
    return [record for record in train(model, config, corpus) if isinstance(record, Evaluation)]


class Peer:
    """nanoGPT's recipe, a few steps at a time: `seconds` are those of all its steps, from the median of the
    ones that were made.
    """

    def __init__(self) -> None:
        self.config = PRESETS["classic"].model
        self.step = PlainStep(EncoderGPT(self.config), torch.float32)
        self.times: list[float] = []

    def go_on(self, steps: int = PEER_STEPS) -> None:
        inputs, targets = torch.randint(self.config.vocab_size, (2, NANOGPT_BATCH, self.config.context))
        for turn in range(steps + 2):  # two to get warm
            started = time.perf_counter()
            self.step(inputs, targets)
            if turn >= 2:
                self.times.append(time.perf_counter() - started)

    @property
    def seconds(self) -> float:
        return NANOGPT_STEPS * statistics.median(self.times)


def arithmetic(precision: Precision) -> str:
    """Which one ours is in, Muon's iterations included."""
    muon = "bfloat16" if gains_by_bfloat16(torch.device("cpu")) else "float32"
    return f"{choose(precision, 'cpu').sentence}; Muon's iterations in {muon}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument("--only", nargs="+", choices=list(BUDGETS), default=list(BUDGETS))
    options = parser.parse_args()
    keep_memory()
    used = choose(options.precision, "cpu")
    print(
        f"Ours: {arithmetic(options.precision)}. nanoGPT's recipe: float32. {torch.get_num_threads()} threads"
    )
    kind = str(used.dtype).removeprefix("torch.")
    peer, figures, goals = Peer(), dict[str, float](), Goals()
    for name in options.only:
        curves = []
        for seed in range(options.seeds):
            peer.go_on()
            curves.append(curve(BUDGETS[name], seed, options.precision))
        peer.go_on()
        rows = []
        for points in zip(*curves, strict=True):
            row: dict[str, object] = {
                name: f"step {points[0].step}",
                "seconds": statistics.median(p.seconds for p in points),
            }
            rows.append(row | {f"seed {i}": round(p.validation_loss, 4) for i, p in enumerate(points)})
        table(rows)
        print()
        ends = [points[-1] for points in curves]
        figures[f"{name}.{kind}.final_loss"] = statistics.median(end.validation_loss for end in ends)
        figures[f"{name}.{kind}.seconds"] = statistics.median(end.seconds for end in ends)
        if name == "fast":
            took = statistics.median(end.seconds if end.validation_loss <= LOSS else 1e9 for end in ends)
            ratio = f"fast.{kind}.times_as_fast_as_nanogpt_recipe"
            figures |= {f"fast.{kind}.seconds_to_{LOSS:.2f}": took, ratio: peer.seconds / took}
            goals[ratio] = (">=", TIMES)
    figures["nanogpt_recipe.float32.seconds"] = peer.seconds
    finish("time_to_quality", figures, goals)


if __name__ == "__main__":
    main()
