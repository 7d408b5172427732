"""Trains the shipped encoder-decoders and the classifier: `python -m engine.experiments encoder-decoders
[NAME ...] [--into checkpoints]`. NAME is one of SHIPPED; without names all of them, one after another.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from engine.config import TrainConfig
from engine.data.pair_corpora import HELD_OUT, LEARNED
from engine.data.tasks.paired import PAIR_TASKS, pairs
from engine.experiments.command import machine, places
from engine.measure.families.classifier import (
    by_size,
    counting_right,
    labelled_right,
    share,
)
from engine.measure.families.cross_attention import AlignmentScore, model_alignment
from engine.presets.pair_recipes import label_recipe, pair_recipe
from engine.seq2seq import build_classifier, build_pair
from engine.training.numerics import choose, keep_memory
from engine.training.records import Evaluation, Record, Snapshot, TrainState
from engine.training.train_pairs import exact, train_labels, train_pairs
from engine.weights.checkpoints import filled
from engine.weights.pair_checkpoints import (
    load_labels,
    load_pair,
    save_labels,
    save_pair,
)

log = logging.getLogger("glassformer.pretrain")

SPEAKERS = "speakers"
SHIPPED = ("dates", "language", "numbers", "number_words", "reverse", "sort", SPEAKERS)
FOLDER = "paired"  # in checkpoints
ALIGNED = 200  # held-out pairs whose alignment is looked at


def pretrain(name: str, into: Path) -> dict[str, Any]:
    """Trains one of SHIPPED, writes it into `into/paired/name`, and returns its metrics."""
    return _labels(into) if name == SPEAKERS else _pair(name, into)


def _pair(name: str, into: Path) -> dict[str, Any]:
    recipe = pair_recipe(name)
    began = time.process_time()
    curve, states = followed(train_pairs(recipe.model, _quiet(recipe.train), recipe.text))
    spent = time.process_time() - began
    model = build_pair(recipe.model, device="meta")
    filled(model, rounded(states[-1]), name)
    model.eval().requires_grad_(False)
    right = exact(model, recipe.text.rows["validation"])
    some = pairs(PAIR_TASKS[name], LEARNED, HELD_OUT)[1][:ALIGNED]
    metrics = {
        "task": name,
        "exact": round(sum(right) / len(right), 4),
        "measured": (
            f"the share of all {len(right):,} held-out sources whose whole target the model writes right,"
            " alone, on the stored weights"
        ),
        "alignment": alignment_json(model_alignment(model, recipe.text.tokenizer, some)),
    } | _made(recipe.train, states[-1], spent, curve)
    save_pair(into / FOLDER / name, model, recipe.text.tokenizer, metrics)
    load_pair(into / FOLDER / name)  # what was written can be read
    return metrics


def _labels(into: Path) -> dict[str, Any]:
    """The weights are those of the last step, not of the best one by what is held out."""
    recipe = label_recipe()
    began = time.process_time()
    curve, states = followed(train_labels(recipe.model, _quiet(recipe.train), recipe.text))
    spent = time.process_time() - began
    model = build_classifier(recipe.model, len(recipe.text.labels), device="meta")
    filled(model, rounded(states[-1]), SPEAKERS)
    model.eval().requires_grad_(False)
    rows = recipe.text.rows["validation"]
    right, counted = labelled_right(model, rows), counting_right(recipe.text)
    metrics = {
        "task": SPEAKERS,
        "right": round(share(right), 4),
        "majority": round(recipe.majority, 4),
        "counting_words": round(share(counted), 4),
        "by_lines": {
            str(lines): {"right": round(model_share, 4), "counting_words": round(words_share, 4)}
            for (lines, model_share), words_share in zip(
                by_size(right, recipe.lines).items(), by_size(counted, recipe.lines).values(), strict=True
            )
        },
        "measured": (
            f"the share of all {len(rows):,} held-out stretches of 1 to 8 lines, on the stored weights"
        ),
    } | _made(recipe.train, states[-1], spent, curve)
    save_labels(into / FOLDER / SPEAKERS, model, recipe.text.labels, recipe.text.tokenizer, metrics)
    load_labels(into / FOLDER / SPEAKERS)
    return metrics


def _quiet(config: TrainConfig) -> TrainConfig:
    """Without samples, which change nothing that is learned."""
    return replace(config, sample_every=0)


def followed(records: Iterator[Record]) -> tuple[list[dict[str, Any]], list[TrainState]]:
    """Runs a training to its end and returns (its evaluations, its snapshots), each step once."""
    curve: dict[int, dict[str, Any]] = {}
    states: dict[int, TrainState] = {}
    for record in records:
        if isinstance(record, Evaluation) and record.task is not None:
            curve[record.step] = {
                "step": record.step,
                "train_loss": round(record.train_loss, 4),
                "validation_loss": round(record.validation_loss, 4),
                "train_right": round(record.task.train, 4),
                "right": round(record.task.validation, 4),
                "seconds": round(record.seconds, 1),
            }
            log.info("%s", curve[record.step])
        elif isinstance(record, Snapshot):
            states[record.step] = record.state
    return [*curve.values()], [*states.values()]


def rounded(state: TrainState) -> dict[str, torch.Tensor]:
    """Returns weights as they are on disk, bfloat16: the shipped model is measured on these."""
    return {key: tensor.bfloat16().float() for key, tensor in state.weights().items()}


def alignment_json(scores: AlignmentScore | None) -> dict[str, Any]:
    """Returns alignment scores as metrics.json holds them."""
    assert scores is not None
    return {
        "pairs": ALIGNED,
        "heads": [[round(float(value), 4) for value in layer] for layer in scores.heads],
        "together": round(scores.together, 4),
        "chance": round(scores.chance, 4),
    }


def _made(
    config: TrainConfig, state: TrainState, spent: float, curve: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "step": state.step,
        "seconds": round(state.seconds, 1),
        "cpu_seconds": round(spent, 1),
        "train": config.to_dict(),
        "numerics": choose(config.precision).sentence,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "curve": curve,
    }


def main(arguments: list[str]) -> None:
    parser = places(__doc__)
    parser.add_argument("names", nargs="*", choices=[*SHIPPED, []], default=[])
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    keep_memory()
    torch.set_num_threads(1)
    for name in options.names or SHIPPED:
        metrics = pretrain(name, options.into)
        log.info(
            "%s: %s after %s s of computing",
            name,
            metrics.get("exact", metrics.get("right")),
            metrics["cpu_seconds"],
        )
