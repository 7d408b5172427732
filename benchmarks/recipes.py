"""What each choice in the preset "fast" is worth: `python -m benchmarks.recipes [--seeds 3] [--only NAME ...]
[--precision float32]`.

The preset, and the same with one thing otherwise, each trained over several seeds. For each: the loss over the
whole validation split of Tiny Shakespeare after the last step (nats per character, windows as long as the
context), the operations of the whole training (in 10^9: products by the ledger, where studies.costs.flops says
what counts, and those of Muon's iterations), and the processor's seconds of its steps alone. What the preset says was tried was measured by this, on one
thread. Losses and operations are the same on the same machine every time; seconds are a matter of the machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from benchmarks.report import Goals, finish, table
from engine.config import ModelConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.model import build
from engine.training.numerics import choose, keep_memory
from engine.training.optim import layout
from engine.training.records import Evaluation, Step
from engine.training.train import train
from studies.attention.head_scores import head_scores
from studies.costs.ledger import ledger
from studies.costs.presets import PRESETS

Otherwise = tuple[Mapping[str, Any], Mapping[str, Any]]  # what of the model, what of the training

# The sizes that the preset had before, those of `classic`.
BEFORE: dict[str, Any] = {"d_model": 128, "n_heads": 4, "d_ff": 512, "norm_gain": False, "qk_gain": False}
SHORTER: dict[str, Any] = {"steps": 200}  # as it was then too
# nanoGPT's recipe for a CPU: 2,000 steps of 12 windows of 64, its sizes those of `classic`.
NANOGPT_STEPS, NANOGPT_BATCH = 2000, 12

OTHERWISE: Mapping[str, Otherwise] = {
    "as it is": ({}, {}),
    "200 steps": ({}, SHORTER),
    "600 steps": ({}, {"steps": 600}),
    # what it was, and one thing otherwise
    "before": (BEFORE, SHORTER),
    "before, 2 heads": (BEFORE | {"n_heads": 2}, SHORTER),
    "before, 8 heads": (BEFORE | {"n_heads": 8}, SHORTER),
    "before, qk_gain": (BEFORE | {"qk_gain": True}, SHORTER),
    "before, norm_gain": (BEFORE | {"norm_gain": True}, SHORTER),
    "before, d_model 96": (BEFORE | {"d_model": 96, "d_ff": 384}, SHORTER),
    "before, d_ff 256": (BEFORE | {"d_ff": 256}, SHORTER),
    "before, 3 layers": (BEFORE | {"n_layers": 3}, SHORTER),
    "before, untied": (BEFORE | {"tie_embeddings": False}, SHORTER),
    "before, embedding normed": (BEFORE | {"embedding_norm": True}, SHORTER),
    "before, Muon's rate 0.03": (BEFORE, SHORTER | {"muon_learning_rate": 0.03}),
    "before, 12 windows": (BEFORE, {"batch_size": 12, "steps": 240}),
    "before, 24 windows": (BEFORE, {"batch_size": 24, "steps": 150}),
    # sizes
    "d_model 128": ({"d_model": 128, "d_ff": 384}, {}),
    "d_model 80": ({"d_model": 80, "d_ff": 240}, {}),
    "d_ff 192": ({"d_ff": 192}, {}),
    "d_ff 192, 200 steps": ({"d_ff": 192}, SHORTER),
    "d_ff 384": ({"d_ff": 384}, {}),
    "3 layers": ({"n_layers": 3}, {}),
    "3 layers, 200 steps": ({"n_layers": 3}, SHORTER),
    "1 head": ({"n_heads": 1}, {}),
    "3 heads": ({"n_heads": 3}, {}),
    "4 heads": ({"n_heads": 4}, {}),
    # parts
    "no gain of norms": ({"norm_gain": False}, {}),
    "no gain of queries and keys": ({"qk_gain": False}, {}),
    "no QK-norm": ({"qk_norm": False, "qk_gain": False}, {}),
    "RMSNorm": ({"norm": "rmsnorm"}, {}),
    "ReLU": ({"ffn": "relu"}, {}),
    "GELU": ({"ffn": "gelu"}, {}),
    "ALiBi": ({"position": "alibi"}, {}),
    "learned positions": ({"position": "learned"}, {}),
    "RoPE base 50": ({"rope_theta": 50.0}, {}),
    "RoPE base 1,000": ({"rope_theta": 1000.0}, {}),
    "RoPE base 10,000": ({"rope_theta": 10_000.0}, {}),
    "untied": ({"tie_embeddings": False}, {}),
    # training
    "AdamW alone": ({}, {"optimizer": "adamw"}),
    "momentum 0.8": ({}, {"muon_momentum": 0.8}),
    "momentum 0.9": ({}, {"muon_momentum": 0.9}),
    "momentum 0.9, 200 steps": ({}, SHORTER | {"muon_momentum": 0.9}),
    "Muon's rate 0.015": ({}, {"muon_learning_rate": 0.015}),
    "Muon's rate 0.03": ({}, {"muon_learning_rate": 0.03}),
    "AdamW's rate 3e-3": ({}, {"learning_rate": 3e-3}),
    "AdamW's rate 1.2e-2": ({}, {"learning_rate": 1.2e-2}),
    "warm-up 20": ({}, {"warmup_steps": 20}),
    "cosine": ({}, {"schedule": "cosine"}),
    "constant rate": ({}, {"schedule": "constant"}),
    "12 windows, 330 steps": ({}, {"batch_size": 12, "steps": 330}),
    "24 windows, 165 steps": ({}, {"batch_size": 24, "steps": 165}),
    "36 windows of 32": ({"context": 32}, {"batch_size": 36}),
}


@dataclass(frozen=True)
class Result:
    """`loss` in nats per character; `seconds` of the processor, on its steps alone."""

    loss: float
    seconds: float


def configs(name: str, **quiet: Any) -> tuple[ModelConfig, TrainConfig]:
    """The preset with what is otherwise under that name."""
    preset, (model, settings) = PRESETS["fast"], OTHERWISE[name]
    return replace(preset.model, **model), replace(cast(TrainConfig, preset.train), **settings, **quiet)


def operations(model: ModelConfig, config: TrainConfig) -> float:
    """10^9 operations of a whole training: what the ledger counts, and Muon's iterations."""
    muon = 0
    if config.optimizer == "muon":
        matrices = [slot for slot in layout(build(model, device="meta")) if slot.group == "matrix"]
        muon = sum(iterations(rows, slot.shape[1]) for slot in matrices for rows in slot.row_blocks)
    step = config.batch_size * model.context * ledger(model).flops().training + muon
    return config.steps * step / 1e9


def iterations(rows: int, columns: int) -> int:
    """Operations of `engine.training.optim.orthogonalise` for one matrix: in each of five iterations the Gram
    matrix of the shorter side, its square, and what applies them.
    """
    short, long = sorted((rows, columns))
    return 5 * (2 * short * short * long + 2 * short**3 + 2 * short * short * long)


def result(corpus: Corpus, name: str, seed: int, precision: str = "auto") -> Result:
    """Trains once and looks only at the end."""
    model, config = configs(
        name,
        seed=seed,
        precision=precision,
        eval_every=0,
        eval_tokens=1,  # of the training text: the validation split is read whole in any case
        sample_every=0,
        look_early=False,
        snapshot_every=0,
        snapshot_early=False,
    )
    clock: list[float] = []
    loss = 0.0
    model = replace(model, vocab_size=corpus.vocab_size)
    for record in train(model, config, corpus, device="cpu", score_heads=head_scores):
        if isinstance(record, Step):
            clock.append(time.process_time())
        elif isinstance(record, Evaluation):
            loss = record.validation_loss
    return Result(loss, (clock[-1] - clock[0]) * config.steps / (config.steps - 1))


def rows(
    corpus: Corpus, names: list[str], seeds: int, precision: str
) -> Iterator[tuple[dict[str, object], float]]:
    """One row for each name, as soon as it is measured, and its mean loss."""
    for name in names:
        found = [result(corpus, name, seed, precision) for seed in range(seeds)]
        mean = statistics.fmean(one.loss for one in found)
        row: dict[str, object] = {"recipe": name}
        row |= {f"seed {seed}": f"{one.loss:.4f}" for seed, one in enumerate(found)}
        row |= {"mean": f"{mean:.4f}", "10^9 operations": round(operations(*configs(name)))}
        yield row | {"seconds": statistics.median(one.seconds for one in found)}, mean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(OTHERWISE), default=list(OTHERWISE))
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    print(choose(options.precision, "cpu").sentence)
    corpus = corpora.load("shakespeare")
    shown, figures = [], {}
    for row, mean in rows(corpus, options.only, options.seeds, options.precision):
        print("  ".join(str(value) for value in row.values()), flush=True)
        shown.append(row)
        figures |= {
            f"{row['recipe']}.loss": mean,
            f"{row['recipe']}.operations": float(str(row["10^9 operations"])),
        }
    classic = PRESETS["classic"]
    peer = operations(classic.model, replace(classic.train, steps=NANOGPT_STEPS, batch_size=NANOGPT_BATCH))
    figures["nanogpt_recipe.operations"] = peer
    print()
    table(shown)
    goals: Goals = {"as it is.loss": ("<=", 1.88)}
    finish("recipes", figures, {goal: bound for goal, bound in goals.items() if goal in figures})


if __name__ == "__main__":
    main()
