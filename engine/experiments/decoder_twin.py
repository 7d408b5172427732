"""The same task in two forms: an encoder-decoder reads a source and writes its target; a decoder of as many
parameters reads both as one text, and continues it.

`python -m engine.experiments decoder-twins [TASK ...]` trains the decoders and writes checkpoints/cast.json,
which comes with the app; the encoder-decoders are those of checkpoints/paired.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig, TrainConfig
from engine.data.pairs import (
    PairedText,
    Rows,
    Split,
    padded,
)
from engine.data.tokenizers.pairs import END, PAD
from engine.experiments.command import machine
from engine.ledger import ledger
from engine.model import Transformer, build
from engine.parts.registry import HEALTHY
from engine.seq2seq_config import Seq2SeqConfig
from engine.training.loop import Loop
from engine.training.numerics import choose, keep_memory
from engine.training.pair_recipes import PairRecipe, pair_recipe
from engine.training.records import Control, Evaluation, Sample, TaskScores
from engine.training.train_pairs import AT_ONCE, drawn, evaluating, rows_for, spread
from engine.weights.checkpoints import write_whole

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
# Those whose encoder-decoder is shipped.
TASKS = ("dates", "language", "number_words", "numbers", "reverse", "sort")
ASKED = 100  # sources of each split that are answered at a quick look
TOKENS = 20.0  # of a line, about: how many lines a look at the loss reads


def cast(pair: Seq2SeqConfig) -> ModelConfig:
    """A decoder with the width of an encoder-decoder and about its parameters: as many layers as both stacks
    together, in which a wider network makes up for the cross-attention, 4 d² a layer that writes.
    """
    c, both = pair.decoder.resolved(), pair.encoder.n_layers + pair.decoder.n_layers
    more = 4 * c.d_model**2 * c.n_layers  # W_Q, W_K, W_V, W_O of each
    width = c.d_ff + round(more / (2 * c.d_model * both))
    context = pair.encoder.context + pair.decoder.context
    return replace(pair.decoder, n_layers=both, d_ff=width, context=context)


@dataclass(frozen=True, eq=False)
class Lines:
    """Pairs as one text each: inputs (batch, position), a source, END, a target; targets (batch, position),
    the target's symbols and END where they are to be said, -1 elsewhere, so that the lessons are those of
    the encoder-decoder.
    """

    inputs: Tensor
    targets: Tensor


def lines(rows: Rows) -> Lines:
    inputs, targets = [], []
    for source, target in zip(rows.sources.tolist(), rows.targets.tolist(), strict=True):
        given = source[: source.index(END) + 1]
        said = target[1 : target.index(END) + 1]
        inputs.append([*given, *said[:-1]])
        targets.append([PAD] * (len(given) - 1) + said)
    wanted = padded(targets)
    return Lines(padded(inputs), wanted.masked_fill(wanted == PAD, -1))


@torch.inference_mode()
def continued_right(model: Transformer, rows: Rows) -> list[bool]:
    """Whether the model, given a source and END, writes the whole target and its end, for each row; the
    likeliest token at each step.
    """
    right: list[bool] = []
    for some in torch.arange(len(rows)).split(AT_ONCE):
        chosen = rows.of(some)
        room = chosen.targets.shape[1] - 1
        texts = F.pad(chosen.sources, (0, room), value=PAD)
        ends = (chosen.sources != PAD).sum(1)  # where each text goes on
        every, starts = torch.arange(len(texts)), ends.clone()
        for _ in range(room):
            best = model(texts)[every, ends - 1].argmax(-1)
            texts[every, ends] = best
            ends = ends + 1
        for row, start, target in zip(texts.tolist(), starts.tolist(), chosen.targets.tolist(), strict=True):
            wanted = target[1 : target.index(END) + 1]
            right.append(row[start : start + len(wanted)] == wanted)
    return right


class _Cast(Loop[Transformer, Lines]):
    def __init__(self, model: ModelConfig, config: TrainConfig, text: PairedText) -> None:
        made = build(model, config.seed, init=config.init)
        super().__init__(made, HEALTHY, config, Control(), choose(config.precision, "cpu"), False)
        self.text = text

    def batch(self) -> Lines:
        rows = self.text.rows["train"]
        return lines(rows.of(drawn(len(rows), self.config, self.step)))

    def loss(self, batch: Lines) -> Tensor:
        logits = self.model(batch.inputs)  # (batch, position, vocab)
        return F.cross_entropy(logits.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=-1)

    def tokens(self, batch: Lines) -> int:
        return (self.step + 1) * int((batch.inputs != PAD).sum())

    def quick_loss(self) -> float:
        return self._mean("train", 1)

    def _mean(self, split: Split, wanted: int) -> float:
        rows = self.text.rows[split]
        with evaluating(self.model, HEALTHY):
            return float(self.loss(lines(rows.of(spread(len(rows), wanted)))))

    def evaluation(self, complete: bool) -> Evaluation:
        self.looked = self.looked if complete else self.step
        limit = rows_for(self.config.eval_tokens, TOKENS)
        with evaluating(self.in_float32(), HEALTHY) as model:
            shares = []
            for split, wanted in (("train", ASKED), ("validation", 0 if complete else ASKED)):
                rows = self.text.rows[split]  # type: ignore[index]
                found = continued_right(model, rows.of(spread(len(rows), wanted)))
                shares.append(sum(found) / len(found))
        with self.numerics.scope():
            losses = self._mean("train", limit), self._mean("validation", limit)
        return Evaluation(self.step, *losses, self.seconds, complete, task=TaskScores(*shares))

    def sample(self) -> Sample:
        raise NotImplementedError  # it is trained without: see `learn`


def learn(recipe: PairRecipe) -> float:
    """Trains the decoder by the encoder-decoder's own recipe; the share of all held-out sources whose target
    it writes right.
    """
    config = replace(recipe.train, sample_every=0, snapshot_every=0, eval_every=0)
    last = 0.0
    for record in _Cast(cast(recipe.model), config, recipe.text).records(None):
        if isinstance(record, Evaluation) and record.task is not None:
            last = record.task.validation
    return last


@dataclass(frozen=True)
class Both:
    """One task in both forms: the share of held-out sources that is right, and the parameters."""

    paired: float
    continued: float
    parameters: tuple[int, int]  # of the encoder-decoder, of the decoder


def shipped(folder: Path = CHECKPOINTS) -> dict[str, Both]:
    """What was measured, by the task; nothing where it was not made yet."""
    path = folder / "cast.json"
    if not path.is_file():
        return {}
    found = json.loads(path.read_text("utf-8"))["tasks"]
    return {
        name: Both(_paired(name, folder), one["right"], (one["paired_parameters"], one["parameters"]))
        for name, one in found.items()
    }


@dataclass(frozen=True)
class Spans:
    """Over so many tasks the lowest and the highest share that each form solves."""

    tasks: int
    paired: tuple[float, float]
    continued: tuple[float, float]


def spans(found: Mapping[str, Both]) -> Spans | None:
    """None where nothing was measured."""
    if not found:
        return None
    paired, continued = (
        [*each] for each in zip(*((b.paired, b.continued) for b in found.values()), strict=True)
    )
    return Spans(len(found), (min(paired), max(paired)), (min(continued), max(continued)))


def _paired(name: str, folder: Path) -> float:
    """What the shipped encoder-decoder reached."""
    metrics = json.loads((folder / "paired" / name / "metrics.json").read_text("utf-8"))
    return float(metrics["exact"])


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    keep_memory()
    path = CHECKPOINTS / "cast.json"
    tasks: dict[str, Any] = json.loads(path.read_text("utf-8"))["tasks"] if path.is_file() else {}
    for name in names or TASKS:
        recipe = pair_recipe(name)
        began = time.process_time()
        right = learn(recipe)
        pair = recipe.model.resolved()
        tasks[name] = {
            "right": round(right, 4),
            "parameters": ledger(cast(recipe.model).resolved()).total,
            "paired_parameters": ledger(pair.decoder, pair.encoder).total,
            "steps": recipe.train.steps,
            "cpu_seconds": round(time.process_time() - began, 1),
        }
        made = {
            "command": "python -m engine.experiments decoder-twins",
            "measured": "the share of 1,000 held-out sources whose whole target is right, after the recipe of"
            " checkpoints/paired, on the weights as trained",
            "machine": machine(),
            "tasks": dict(sorted(tasks.items())),
        }
        write_whole(path, (json.dumps(made, indent=1) + "\n").encode())
