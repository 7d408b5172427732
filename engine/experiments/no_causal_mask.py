"""The purpose of the causal mask: the same training with it and without, step by step."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from engine.config import ModelConfig, SampleConfig, TrainConfig
from engine.data import corpora
from engine.data.corpus import Corpus
from engine.data.progress import finish
from engine.experiments.command import complete, folder_options, machine, made, reading, require_all
from engine.measure.families.unmasked_attention import end_loss, opened
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY
from engine.presets import PRESETS
from engine.sample.generate import generate
from engine.training.batches import Batches, loss_of, measure
from engine.training.numerics import choose
from engine.training.optim import Optimiser, learning_rate_factor
from engine.weights.checkpoints import Checkpoint, load, model_with, save

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


def learn(
    model_config: ModelConfig, config: TrainConfig, corpus: Corpus
) -> Generator[tuple[int, float, str], None, Transformer]:
    """Trains on the next token, mask or not, yielding (step, loss, sample); returns the model."""
    numerics = choose("float32", "cpu")
    model = build(model_config, config.seed, init=config.init)
    HEALTHY.mode(model, True)
    optimiser, batches = Optimiser(model, config, numerics), Batches(corpus, model_config, config)
    for step in range(config.steps + 1):
        if step % EVERY == 0:
            loss = measure(model, batches, corpus.validation, SEEN).nats
            yield step, loss, sample_text(model, corpus, config.seed)
        if step < config.steps:
            optimiser.update(
                loss_of(model, batches.at(step), numerics.device), learning_rate_factor(config, step)
            )
    return model


def sample_text(model: Transformer, corpus: Corpus, seed: int) -> str:
    """Writes WRITTEN letters after PROMPT, each drawn from the last position's probabilities."""
    HEALTHY.mode(model, False)
    ids = generate(
        model,
        corpus.tokenizer.encode(PROMPT),
        WRITTEN,
        SampleConfig(temperature=0.8, seed=seed),
        cached=False,
    )
    text = corpus.tokenizer.decode(list(ids))
    HEALTHY.mode(model, True)
    return text


def trained(name: str, corpus: Corpus, steps: int) -> tuple[Learning, Transformer]:
    """Trains with the mask, MASKED, or without, UNMASKED, and returns the model, too."""
    preset = PRESETS[PRESET]
    config = replace(preset.train or TrainConfig(), steps=steps)
    model = replace(preset.model, causal=name == MASKED, vocab_size=corpus.vocab_size)
    rows: list[tuple[int, float, str]] = []
    result = finish(learn(model, config, corpus), rows.append)
    at, nats, texts = zip(*rows, strict=True)
    return Learning(at, nats, texts), result


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
        return {
            name: Learning(
                tuple(each["steps"]), tuple(each["losses"]), tuple(each["texts"]), each.get("made", "")
            )
            for name, each in stored.items()
        }


@cache
def shipped(path: Path = SHIPPED) -> Both:
    """Reads the training that comes with the app: STEPS steps of the preset "fast" on Tiny Shakespeare.
    Raises CheckpointError, also where one of the two is not stored.
    """
    trainings = opened_trainings(path)
    require_all(trainings, (MASKED, UNMASKED), path, "no-causal-mask")
    return Both(trainings[MASKED], trainings[UNMASKED])


def written(training: Learning) -> dict[str, Any]:
    """Returns a training as JSON."""
    return asdict(training) | {"losses": [round(x, 4) for x in training.losses]}


def main(arguments: Sequence[str] | None = None) -> None:
    into = folder_options(__doc__).parse_args(arguments).into
    corpus = corpora.load("shakespeare")

    def train(name: str) -> Learning:
        learning, model = trained(name, corpus, STEPS)
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
        train,
        written,
        lambda training: f"loss {training.losses[-1]:.3f}",
        dict,
    )
