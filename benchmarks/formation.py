"""When heads form: `python -m benchmarks.formation [--seeds 3] [--only NAME ...]`.

The preset "induction", and the same with one thing otherwise: the step at which a head first gives half of its
weight to the token before, the step at which one first copies, the best scores at the end, the loss on unseen
text and the processor's seconds. What the preset says was tried was measured by this.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from engine.config import TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.training.numerics import keep_memory
from engine.training.records import Evaluation
from engine.training.train import train
from studies.attention.head_scores import formed, head_scores, strongest
from studies.costs.presets import PRESETS

# Name -> (what of the model, what of the training) is otherwise.
OTHERWISE: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as it is": ({}, {}),
    "repeats in 30%": ({}, {"repeat": 0.3}),
    "repeats in 40%": ({}, {"repeat": 0.4}),
    "no repeats": ({}, {"repeat": 1e-3}),  # the heads are still scored
    "RoPE": ({"position": "rope", "rope_theta": 1000.0}, {}),
    "RoPE, repeats in 50%": ({"position": "rope", "rope_theta": 1000.0}, {"repeat": 0.5, "steps": 1000}),
    "ALiBi": ({"position": "alibi"}, {}),
    "sinusoids": ({"position": "sinusoidal"}, {}),
    "T5's biases": ({"position": "t5"}, {"learning_rate": 0.012}),
    "64 wide": ({"d_model": 64, "d_ff": 172}, {}),
    "QK-norm": ({"qk_norm": True}, {}),
    "windows of 96": ({"context": 96}, {"batch_size": 24}),
    "AdamW 2e-3": ({}, {"optimizer": "adamw", "learning_rate": 2e-3}),
}


@dataclass(frozen=True)
class Course:
    """Steps are None where no head had half of its weight; scores are those of the best heads at the end."""

    reads: int | None
    copies: int | None
    previous: float
    induction: float
    loss: float
    seconds: float


def course(corpus: Corpus, model: Mapping[str, Any], settings: Mapping[str, Any], seed: int) -> Course:
    """Trains once, without samples and snapshots, and looks at the heads every 20 steps."""
    preset = PRESETS["induction"]
    config = replace(preset.model, vocab_size=corpus.vocab_size, **model)
    quiet = {
        "sample_every": 0,
        "look_early": False,
        "snapshot_every": 0,
        "snapshot_early": False,
        "seed": seed,
    }
    started = time.process_time()
    order = replace(cast(TrainConfig, preset.train), **quiet, **settings)
    records = train(config, order, corpus, device="cpu", score_heads=head_scores)
    looks = [record for record in records if isinstance(record, Evaluation) and record.heads]
    seconds = time.process_time() - started
    first: dict[str, int] = {}
    for one in formed((look.step, look.heads) for look in looks):
        first.setdefault(one.kind, one.step)
    last = looks[-1]
    assert last.heads is not None
    best = (strongest(grid).value for grid in (last.heads.previous, last.heads.induction))
    return Course(first.get("previous"), first.get("induction"), *best, last.validation_loss, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(OTHERWISE), default=list(OTHERWISE))
    options = parser.parse_args()
    keep_memory()
    corpus = corpora.load("shakespeare")
    write = sys.stdout.write
    write("| recipe | seed | reads the token before | copies | at the end | loss | processor seconds |\n")
    write("|---|---|---|---|---|---|---|\n")
    for name in options.only:
        for seed in range(options.seeds):
            found = course(corpus, *OTHERWISE[name], seed)
            write(
                f"| {name} | {seed} | {found.reads or 'never'} | {found.copies or 'never'} |"
                f" {found.previous:.2f}, {found.induction:.2f} | {found.loss:.3f} | {found.seconds:.0f} |\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
