"""Expectations of the ladder's rungs after a letter or two, beside the frequencies of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from engine.data import corpora
from engine.data.corpus import Corpus
from engine.model import Transformer, build
from engine.parts.registry import parts_of
from engine.training.records import Evaluation, Snapshot
from engine.training.train import train
from studies.experiments.command import (
    complete,
    folder_options,
    from_json,
    made,
    reading,
    require_all,
    require_recipe,
)
from studies.tasks.rungs import LADDER, LONG_TRAINING
from studies.tasks.text_statistics import counted, expected

SHIPPED = Path(__file__).parents[2] / "checkpoints" / "races" / "pairs.json"
SINGLE = ("t", "e", " ", "n")
DOUBLE = ("th", "sh")
TABLE = "last"  # a bigram model
SEEING = ("attention-1", "positions")  # rungs that see more than one letter
# That h is not the same after t and after s is learned late.
TRAINING = replace(LONG_TRAINING, eval_every=0, sample_every=0, snapshot_every=0)


@dataclass(frozen=True, eq=False)
class Rung:
    """A trained rung: its shares (letter,) by the letters before, its `loss` in nats per letter. `made` says
    where and when.
    """

    shares: Mapping[str, np.ndarray]
    loss: float
    made: str = ""


@dataclass(frozen=True, eq=False)
class Expectations:
    """Shares (letter,) by the letters before, in the text and by rung; `losses` in nats per letter, and
    what `made` it, by rung.
    """

    letters: tuple[str, ...]
    text: Mapping[str, np.ndarray]
    rungs: Mapping[str, Mapping[str, np.ndarray]]
    losses: Mapping[str, float]
    made: Mapping[str, str]

    def of(self, source: str, given: str, letter: str) -> float:
        """Returns the share of one letter; `source` is `text` or a rung."""
        shares = self.text if source == "text" else self.rungs[source]
        return float(shares[given][self.letters.index(letter)])

    def top(self, given: str, count: int) -> tuple[str, ...]:
        """Returns the most frequent letters of the text, first the likeliest."""
        return tuple(self.letters[i] for i in np.argsort(-self.text[given], kind="stable")[:count])

    def apart(self, source: str) -> float:
        """Returns how differently a source goes on after the two of DOUBLE, 0 to 1 (total variation)."""
        shares = self.text if source == "text" else self.rungs[source]
        first, second = (shares[given] for given in DOUBLE)
        return float(np.abs(first - second).sum() / 2)


def trained(name: str, corpus: Corpus) -> tuple[Transformer, float]:
    """Trains a rung by TRAINING, and returns it with its loss on the whole validation split."""
    rung = LADDER[name]
    config = rung.at(corpus.vocab_size, rung.model.context, rung.model.d_model)
    loss, last = float("nan"), None
    for record in train(config, TRAINING, corpus, parts=parts_of(rung.parts), device="cpu"):
        if isinstance(record, Evaluation):
            loss = record.validation_loss
        elif isinstance(record, Snapshot):
            last = record
    assert last is not None
    model = build(config, parts=parts_of(rung.parts)).eval().requires_grad_(False)
    model.load_state_dict(last.state.weights())
    return model, loss


def measured(name: str, corpus: Corpus) -> Rung:
    """Trains a rung and measures which letter it expects after a letter or two."""
    model, loss = trained(name, corpus)
    return Rung(
        {given: expected(model, corpus, given) for given in (*SINGLE, *DOUBLE)}, loss, made("bigrams")
    )


def stored(path: Path) -> Expectations:
    """Reads the expectations that are stored so far. Raises CheckpointError, also for a file of another
    training.
    """
    with reading(path, "bigrams") as values:
        require_recipe(values, {"train": TRAINING.to_dict()}, path)
        return from_json(Expectations, {name: each for name, each in values.items() if name != "train"})


@cache
def shipped(path: Path = SHIPPED) -> Expectations:
    """Reads the expectations that come with the app. Raises CheckpointError where a rung is not stored."""
    expectations = stored(path)
    require_all(expectations.rungs, (TABLE, *SEEING), path, "bigrams")
    return expectations


def opened(path: Path) -> dict[str, Rung]:
    """Reads the stored rungs by name. Raises CheckpointError for an unreadable file."""
    found = stored(path)
    return {name: Rung(shares, found.losses[name], found.made[name]) for name, shares in found.rungs.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    file = folder_options(__doc__).parse_args(arguments).into / "races" / SHIPPED.name
    corpus = corpora.load("shakespeare")

    def whole(rungs: Mapping[str, Rung]) -> dict[str, Any]:
        return {
            "train": TRAINING.to_dict(),
            "made": {name: rung.made for name, rung in rungs.items()},
            "letters": [corpus.tokenizer.decode([i]) for i in range(corpus.vocab_size)],
            "losses": {name: rung.loss for name, rung in rungs.items()},
            "text": {given: counted(corpus, given) for given in (*SINGLE, *DOUBLE)},
            "rungs": {name: rung.shares for name, rung in rungs.items()},
        }

    complete(
        file,
        (TABLE, *SEEING),
        opened,
        lambda name: measured(name, corpus),
        lambda rung: f"held-out loss {rung.loss:.3f}",
        whole,
    )
