"""Why decoders replaced the other families: four reasons, each counted or measured for each family.

The tasks of checkpoints/paired were also trained as one text each, source and target, by a decoder with the
parameters of the encoder-decoder; checkpoints/cast.json holds the shares that it solves. The experiment
is no longer part of the code: commit b762a52 has it in studies/experiments/decoder_twin.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.training.batches import masked_batch, next_token_batch
from studies.costs.ledger import Ledger, ledger
from studies.experiments.command import reading
from studies.tasks.all import TASKS

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
DRAWS = 2000  # texts whose hidden positions are drawn and counted


@dataclass(frozen=True)
class Lessons:
    """Positions of one text that have a loss: mean for the encoder; for both, half is the source."""

    encoder: float
    decoder: int
    both: int

    @property
    def times(self) -> float:
        """Returns how many times as many a decoder has as an encoder."""
        return self.decoder / self.encoder


def lessons(tokens: int, rate: float, seed: int = 0) -> Lessons:
    """Counts the losses of a text of `tokens` in training's own batches; `rate` is what an encoder hides."""
    windows = torch.zeros(DRAWS, tokens + 1, dtype=torch.int64)
    hidden = masked_batch(windows[:, 1:], rate, 1, torch.Generator().manual_seed(seed))
    predicted = int((next_token_batch(windows).targets[0] >= 0).sum())
    return Lessons(float((hidden.targets >= 0).sum() / DRAWS), predicted, predicted - predicted // 2)


@dataclass(frozen=True)
class WritingCost:
    """FLOPs of writing `written` tokens after `given`: with a KV cache, and reading all again each time."""

    given: int
    written: int
    cached: int
    recomputed: int

    @property
    def times(self) -> float:
        return self.recomputed / self.cached


def writing(decoder: Ledger, given: int, written: int) -> WritingCost:
    """Returns the cost of writing: a token that attends to n costs `flops(n)`; the last is unread."""
    lengths = range(given, given + written)
    prompt = given * decoder.flops(given).forward
    cached = prompt + sum(decoder.flops(length).forward for length in lengths[1:])
    recomputed = sum(length * decoder.flops(length).forward for length in lengths)
    return WritingCost(given, written, cached, recomputed)


def pair_writing(both: Ledger, tokens: int) -> int:
    """Returns the FLOPs of an encoder-decoder that reads `tokens` once and writes as many, cached."""
    assert both.encoder is not None
    reads, whole = ledger(both.encoder).flops(tokens).forward, both.flops(tokens)
    across = sum(row.flops for row in whole.rows if row.component == "cross_attention")
    decoder = ledger(both.config)  # without its source
    return tokens * (reads + across) + sum(decoder.flops(n).forward for n in range(1, tokens + 1))


def at_work(counted: Ledger) -> float:
    """Returns the share of a model's parameters used in writing a token: all but the encoder's."""
    return sum(row.parameters for row in counted.rows if row.stack != "encoder") / counted.total


@dataclass(frozen=True)
class Interface:
    """The shipped tasks that a decoder learned: how many, and the lowest share solved (held out)."""

    tasks: int
    least: float


def interface(folder: Path = CHECKPOINTS / "tasks") -> Interface:
    """Reads the scores of the shipped models of TASKS. Raises CheckpointError for an unreadable file."""
    paths = [path for path in sorted(folder.glob("*/metrics.json")) if path.parent.name in TASKS]
    return Interface(len(paths), min((_score(path) for path in paths), default=0.0))


def _score(path: Path) -> float:
    with reading(path, "shipped tasks") as metrics:
        return float(metrics["solved"]["validation"])


@dataclass(frozen=True)
class TwoForms:
    """One task as pairs and as one text: shares of held-out sources right, parameters of both models."""

    paired: float
    continued: float
    parameters: tuple[int, int]


def stored_forms(folder: Path = CHECKPOINTS) -> dict[str, TwoForms]:
    """Reads cast.json and the scores of the encoder-decoders: task -> both forms; empty without the file.
    Raises CheckpointError for an unreadable one.
    """
    path = folder / "cast.json"
    if not path.is_file():
        return {}

    def exact(name: str) -> float:
        with reading(folder / "paired" / name / "metrics.json", "encoder-decoders") as metrics:
            return float(metrics["exact"])

    with reading(path, "cast") as stored:
        return {
            name: TwoForms(exact(name), row["right"], (row["paired_parameters"], row["parameters"]))
            for name, row in stored["tasks"].items()
        }


@dataclass(frozen=True)
class Reasons:
    """All four reasons, at one length of a text."""

    lessons: Lessons
    writing: WritingCost
    interface: Interface
    at_work: float
    pair_writing: int
    forms: Mapping[str, TwoForms]


def reasons(tokens: int, rate: float, counted: Mapping[str, Ledger]) -> Reasons:
    """Counts the reasons for a text of `tokens` and as many written; `counted`: the families' ledgers."""
    return Reasons(
        lessons(tokens, rate),
        writing(counted["decoder"], tokens, tokens),
        interface(),
        at_work(counted["both"]),
        pair_writing(counted["both"], tokens),
        stored_forms(),
    )
