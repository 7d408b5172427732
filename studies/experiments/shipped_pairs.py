"""Trains the shipped encoder-decoders and the classifier: `python -m studies.experiments encoder-decoders
[NAME ...] [--into checkpoints]`. NAME is one of SHIPPED; without names all of them, one after another.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.checkpoints import filled, save
from engine.config import TrainConfig
from engine.presets import Preset
from engine.training.numerics import choose
from engine.training.records import Evaluation, Record, Snapshot, TrainState
from studies.experiments.command import begin, folder_options, machine
from studies.families.classifier import by_size, counting_right, labelled_right, share
from studies.families.cross_attention import AlignmentScore, model_alignment
from studies.pairs.checkpoints import labelled, load_labels, load_pair
from studies.pairs.corpora import HELD_OUT, LEARNED, Speakers, pair_text, speakers
from studies.pairs.dataset import PairedText
from studies.pairs.encoders import ENCODERS
from studies.pairs.paired import PAIR_TASKS, pairs
from studies.pairs.presets import PAIRED
from studies.pairs.seq2seq import build_classifier, build_pair
from studies.pairs.train import exact, train_labels, train_pairs

log = logging.getLogger("glassformer.pretrain")

SPEAKERS = "speakers"
SHIPPED = ("dates", "language", "numbers", "number_words", "reverse", "sort", SPEAKERS)
FOLDER = "paired"  # in checkpoints
ALIGNED = 200  # held-out pairs whose alignment is looked at


def pretrain(name: str, into: Path) -> dict[str, Any]:
    """Trains one of SHIPPED, writes it into `into/paired/name`, and returns its metrics."""
    if name == SPEAKERS:
        return pretrain_labels(speakers(), ENCODERS[SPEAKERS], into)
    return pretrain_pairs(pair_text(name), PAIRED[name], into)


def pretrain_pairs(text: PairedText, preset: Preset, into: Path) -> dict[str, Any]:
    """Trains an encoder-decoder, as `pretrain`."""
    config = text.fitted(preset.model)
    model = build_pair(config, device="meta")
    made = _trained(model, preset.train, lambda train: train_pairs(config, train, text))
    right = exact(model, text.rows["validation"])
    some = pairs(PAIR_TASKS[text.name], LEARNED, HELD_OUT)[1][:ALIGNED]
    metrics = {
        "task": text.name,
        "exact": round(sum(right) / len(right), 4),
        "measured": (
            f"the share of all {len(right):,} held-out sources whose whole target the model writes right,"
            " alone, on the stored weights"
        ),
        "alignment": alignment_json(model_alignment(model, text.tokenizer, some)),
    } | made
    save(into / FOLDER / text.name, model, text.tokenizer, metrics, torch.bfloat16)
    load_pair(into / FOLDER / text.name)  # what was written can be read
    return metrics


def pretrain_labels(data: Speakers, preset: Preset, into: Path) -> dict[str, Any]:
    """Trains a classifier, as `pretrain`. Its weights are those of the last step, whatever is held out."""
    text, lines = data.text, data.lines
    config = text.fitted(preset.model)
    model = build_classifier(config, len(text.labels), device="meta")
    made = _trained(model, preset.train, lambda train: train_labels(config, train, text))
    rows = text.rows["validation"]
    right, counted = labelled_right(model, rows), counting_right(text)
    by_words = by_size(counted, lines)
    metrics = {
        "task": SPEAKERS,
        "right": round(share(right), 4),
        "majority": round(data.majority, 4),
        "counting_words": round(share(counted), 4),
        "by_lines": {
            str(size): {"right": round(model_share, 4), "counting_words": round(by_words[size], 4)}
            for size, model_share in by_size(right, lines).items()
        },
        "measured": (
            f"the share of all {len(rows):,} held-out stretches of 1 to 8 lines, on the stored weights"
        ),
    } | made
    described = labelled(model, text.labels)
    save(into / FOLDER / SPEAKERS, model, text.tokenizer, metrics, torch.bfloat16, described)
    load_labels(into / FOLDER / SPEAKERS)
    return metrics


def _trained(
    model: nn.Module, train: TrainConfig | None, records: Callable[[TrainConfig], Iterator[Record]]
) -> dict[str, Any]:
    """Trains without samples, fills `model` with the last weights as on disk, and returns metrics."""
    assert train is not None
    began = time.process_time()
    curve, states = followed(records(replace(train, sample_every=0)))
    spent = time.process_time() - began
    filled(model, rounded(states[-1]), "this training")
    model.eval().requires_grad_(False)
    return {
        "step": states[-1].step,
        "seconds": round(states[-1].seconds, 1),
        "cpu_seconds": round(spent, 1),
        "train": train.to_dict(),
        "numerics": choose(train.precision).sentence,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "curve": curve,
    }


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


def main(arguments: list[str]) -> None:
    parser = folder_options(__doc__)
    parser.add_argument("names", nargs="*", choices=[*SHIPPED, []], default=[])
    options = parser.parse_args(arguments)
    begin(threads=1)
    for name in options.names or SHIPPED:
        metrics = pretrain(name, options.into)
        log.info(
            "%s: %s after %s s of computing",
            name,
            metrics.get("exact", metrics.get("right")),
            metrics["cpu_seconds"],
        )
