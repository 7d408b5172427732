"""Why models that only continue a text won: what of it can be counted or measured here, for each family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.experiments.decoder_twin import Spans, shipped, spans
from engine.ledger import Ledger, ledger
from engine.training.batches import masked_batch, next_token_batch

TASKS = Path(__file__).parents[2] / "checkpoints" / "tasks"
DRAWS = 2000  # texts whose hidden places are drawn and counted


@dataclass(frozen=True)
class Lessons:
    """Places of one text at which something is to be said, and so a loss: in the mean for the encoder, whose
    places are drawn; for both, with the first half of the text as the source.
    """

    encoder: float
    decoder: int
    both: int

    @property
    def times(self) -> float:
        """How many times as many a decoder has as an encoder."""
        return self.decoder / self.encoder


def lessons(tokens: int, rate: float, seed: int = 0) -> Lessons:
    """Of a text of so many tokens, counted in the very batches that training draws."""
    windows = torch.zeros(DRAWS, tokens + 1, dtype=torch.int64)
    hidden = masked_batch(windows[:, 1:], rate, 1, torch.Generator().manual_seed(seed))
    told = next_token_batch(windows)
    places = int((told.targets[0] >= 0).sum())
    return Lessons(float((hidden.targets >= 0).sum() / DRAWS), places, places - places // 2)


@dataclass(frozen=True)
class Writing:
    """FLOPs of writing `written` tokens after `given`: with what was read kept, and with everything read
    again for each token, as one has to who looks both ways.
    """

    given: int
    written: int
    kept: int
    again: int

    @property
    def times(self) -> float:
        return self.again / self.kept


def writing(decoder: Ledger, given: int, written: int) -> Writing:
    """Of one model, from its ledger: a token that looks at n tokens costs `flops(n)`. The last token written
    is not read again.
    """
    lengths = range(given, given + written)
    first = given * decoder.flops(given).forward
    kept = first + sum(decoder.flops(length).forward for length in lengths[1:])
    again = sum(length * decoder.flops(length).forward for length in lengths)
    return Writing(given, written, kept, again)


def pair_writing(both: Ledger, tokens: int) -> int:
    """FLOPs of an encoder-decoder that reads `tokens` of a source, once, and writes as many, with everything
    kept: written token n looks at n of its own and at the whole source.
    """
    assert both.encoder is not None
    reads, whole = ledger(both.encoder).flops(tokens).forward, both.flops(tokens)
    across = sum(row.flops for row in whole.rows if row.component == "cross_attention")
    alone = ledger(both.config)  # the decoder without its source
    return tokens * (reads + across) + sum(alone.flops(n).forward for n in range(1, tokens + 1))


def at_work(made: Ledger) -> float:
    """The share of a model's parameters that take part in writing a token, once the source is read: all but
    the encoder's.
    """
    return sum(row.parameters for row in made.rows if row.stack != "encoder") / made.total


@dataclass(frozen=True)
class Interface:
    """The shipped tasks that a decoder learned as continuations of a line: how many, and the least share of
    held-out problems that one of them solves.
    """

    tasks: int
    least: float


def interface(folder: Path = TASKS) -> Interface:
    """Read from what each shipped task reached."""
    found = [json.loads(path.read_text("utf-8"))["solved"] for path in sorted(folder.glob("*/metrics.json"))]
    return Interface(len(found), min(each["validation"] for each in found))


@dataclass(frozen=True)
class Reasons:
    """All that is counted or measured of them, at one length of a text."""

    lessons: Lessons
    writing: Writing
    interface: Interface
    at_work: float
    pair_writing: int
    forms: Spans | None  # the same tasks as pairs and as one text


def reasons(tokens: int, rate: float, counted: Mapping[str, Ledger]) -> Reasons:
    """For a text of `tokens` and as many written; `counted` are the ledgers of the three families."""
    return Reasons(
        lessons(tokens, rate),
        writing(counted["decoder"], tokens, tokens),
        interface(),
        at_work(counted["both"]),
        pair_writing(counted["both"], tokens),
        spans(shipped()),
    )
