"""The purpose of the causal mask: the same training with it and without, step by step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from engine.checkpoints import Checkpoint, load, model_with, save
from engine.config import TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.model import Transformer
from engine.training.batches import Batches, measure
from engine.training.records import Evaluation, Sample, Snapshot
from engine.training.train import train
from studies.costs.presets import PRESETS
from studies.experiments.command import (
    complete,
    folder_options,
    from_json,
    machine,
    made,
    reading,
    require_all,
)
from studies.families.unmasked_attention import end_loss, opened

SHIPPED = Path(__file__).parents[2] / "checkpoints" / "unmasked.json"
SQUARE = SHIPPED.parent / "square"
MASKED, UNMASKED = "masked", "unmasked"  # folders of it
PRESET, PROMPT = "fast", "ROMEO:"
STEPS, EVERY = 200, 10
WRITTEN, SEEN = 60, 8192  # letters; tokens of unseen text


@dataclass(frozen=True)
class Learning:
    """One training: `losses` on unseen text (nats per letter) and `texts` after PROMPT, at `steps`. `made`
    says where and when.
    """

    steps: tuple[int, ...]
    losses: tuple[float, ...]
    texts: tuple[str, ...]
    made: str = ""


@dataclass(frozen=True)
class Both:
    """The same model, texts, seed and steps with the causal mask and without."""

    masked: Learning
    unmasked: Learning


def learn(name: str, corpus: Corpus, steps: int) -> tuple[Learning, Transformer]:
    """Trains on the next token with the mask, MASKED, or without, UNMASKED, and returns the model, too."""
    preset = PRESETS[PRESET]
    model = replace(preset.model, causal=name == MASKED, vocab_size=corpus.vocab_size)
    config = replace(
        preset.train or TrainConfig(),
        steps=steps,
        precision="float32",
        eval_every=EVERY,
        eval_tokens=SEEN,
        look_early=False,
        sample_every=EVERY,
        sample_prompt=PROMPT,
        sample_length=WRITTEN,
        sample_temperature=0.8,
    )
    nats: dict[int, float] = {}
    texts: dict[int, str] = {}
    for record in train(model, config, corpus, device="cpu"):
        if isinstance(record, Evaluation) and not record.complete:
            nats[record.step] = record.validation_loss
        elif isinstance(record, Sample):
            texts[record.step] = record.text
        elif isinstance(record, Snapshot):
            weights = record.state.weights()
    return Learning(tuple(nats), tuple(nats.values()), tuple(texts.values())), model_with(model, weights)


def losses(model: Transformer, batches: Batches) -> dict[str, float]:
    """Measures losses on the whole validation split, nats per letter: `validation_loss` over all positions of
    a window, as training counts it; `end_loss` at its last position alone.
    """
    tokens = batches.corpus.validation
    return {
        "validation_loss": round(measure(model, batches, tokens).nats, 4),
        "end_loss": round(end_loss(model, batches.windows(tokens, 0)), 4),
    }


def stored(model: Transformer, corpus: Corpus, steps: int, into: Path) -> dict[str, Any]:
    """Writes one of the two models into a folder, and returns its metrics: its losses, measured on the
    weights as they lie on disk; of one with a mask also those of the same weights without it, `opened`.
    """
    weights = {name: p.detach().bfloat16().float() for name, p in model.named_parameters()}
    rounded = model_with(model.config, weights)
    config = replace(PRESETS[PRESET].train or TrainConfig(), steps=steps)
    batches = Batches(corpus, rounded.config, config)
    metrics: dict[str, Any] = {"corpus": corpus.name, **losses(rounded, batches)}
    if rounded.config.causal:
        metrics["opened"] = losses(opened(rounded), batches)
    metrics |= {
        "measured": (
            f"nats per letter over the whole validation split, in windows of {rounded.config.context}, in"
            " float32, on the stored weights; end_loss at the last place of each window"
        ),
        "step": steps,
        "train": config.to_dict(),
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
    }
    save(into, rounded, corpus.tokenizer, metrics, torch.bfloat16)
    return metrics


@cache
def square(name: str, folder: Path = SQUARE) -> Checkpoint:
    """Reads a shipped model, MASKED or UNMASKED. Raises CheckpointError where it is not there."""
    return load(folder / name)


def opened_trainings(path: Path) -> dict[str, Learning]:
    """Reads the stored trainings by name. Raises CheckpointError for an unreadable file."""
    with reading(path, "no-causal-mask") as stored:
        return {name: from_json(Learning, each) for name, each in stored.items()}


@cache
def shipped(path: Path = SHIPPED) -> Both:
    """Reads the training that comes with the app: STEPS steps of the preset "fast" on Tiny Shakespeare.
    Raises CheckpointError, also where one of the two is not stored.
    """
    trainings = opened_trainings(path)
    require_all(trainings, (MASKED, UNMASKED), path, "no-causal-mask")
    return Both(trainings[MASKED], trainings[UNMASKED])


def main(arguments: Sequence[str] | None = None) -> None:
    into = folder_options(__doc__).parse_args(arguments).into
    corpus = corpora.load("shakespeare")

    def trained(name: str) -> Learning:
        learning, model = learn(name, corpus, STEPS)
        stored(model, corpus, STEPS, into / SQUARE.name / name)
        return replace(learning, made=made("no-causal-mask"))

    def with_model(path: Path) -> dict[str, Learning]:
        """The stored trainings whose model is stored, too."""
        trainings = opened_trainings(path)
        return {name: each for name, each in trainings.items() if (into / SQUARE.name / name).is_dir()}

    complete(
        into / SHIPPED.name,
        (MASKED, UNMASKED),
        with_model,
        trained,
        lambda training: f"loss {training.losses[-1]:.3f}",
        dict,
    )
