"""Scores of each head at any moment of a training: copying, reading the token before; and their start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.data.tokenizers import Tokenizer, token_bytes
from engine.model import Transformer
from engine.recording import record
from engine.training.records import Evaluation, Grid, HeadScores
from studies.attention.heads import HeadValue, ranked_heads
from studies.circuits.induction import drawn, ordinary, read_twice

COUNT, DRAWS = 24, 4  # different tokens that are read twice; draws over which is averaged
HALF = 0.5  # of its weight: from here on a head has formed
LITTLE = 0.1  # of its weight: below it a head does something else

Kind = Literal["previous", "induction"]


def read_at(model: Transformer, tokenizer: Tokenizer, seed: int) -> tuple[int, ...] | None:
    """Returns the tokens of one draw, which `head_scores` reads twice; None for a model without attention or
    without the causal mask, or too small to read two different tokens twice.
    """
    config = model.config
    pool = ordinary(token_bytes(tokenizer))
    count = min(COUNT, config.context // 2, len(pool))
    if count < 2 or not (model.parts.mixer(config).present and config.causal):
        return None
    return drawn(pool, count, seed)


def head_scores(model: Transformer, tokenizer: Tokenizer) -> HeadScores | None:
    """Returns means over DRAWS draws of random tokens that are read twice; None where `read_at` is."""
    draws = [read_at(model, tokenizer, seed) for seed in range(DRAWS)]
    readings = [read_twice(model, once) for once in draws if once is not None]
    if not readings:
        return None
    induction, previous = (
        tuple(tuple(float(score) for score in row) for row in np.mean(grids, axis=0))
        for grids in ([reading.scores for reading in readings], [reading.previous for reading in readings])
    )
    first, second = (
        float(np.mean(losses))
        for losses in (
            [reading.first_loss for reading in readings],
            [reading.second_loss for reading in readings],
        )
    )
    return HeadScores(induction, previous, first, second)


def strongest(grid: Grid) -> HeadValue:
    """Returns the head with the largest score; of equal ones the lower."""
    return ranked_heads(np.array(grid))[0]


@dataclass(frozen=True)
class HeadGrowth:
    """The head that copies most at the newest evaluation, and how it grew.

    It last gave less than LITTLE of its weight to copying at `since` (since then always more), and first HALF
    at `formed`; the same of the head that most reads the token `previous`. Losses are those of random tokens
    read once and a second time, nats per token; `seconds` lie between `since` and now.
    """

    step: int
    head: HeadValue
    since: int
    before: float
    seconds: float
    first_loss: float
    second_loss: float
    formed: int | None
    previous: HeadValue
    previous_formed: int | None

    @property
    def is_formed(self) -> bool:
        return self.head.value >= HALF


def grown(looks: Sequence[Evaluation]) -> HeadGrowth | None:
    """Returns None where no evaluation scored the heads."""
    scored = [(look, look.heads) for look in looks if look.heads is not None]
    if not scored:
        return None
    newest, scores = scored[-1]
    head, previous = strongest(scores.induction), strongest(scores.previous)
    at = {(each.kind, each.layer, each.head): each.step for each in formed((x.step, y) for x, y in scored)}
    course = [(look, heads.induction[head.layer][head.head]) for look, heads in scored]
    low = [each for each in course[:-1] if each[1] < LITTLE]
    since, before = low[-1] if low else course[0]
    spent = newest.seconds - since.seconds
    return HeadGrowth(
        newest.step,
        head,
        since.step,
        before,
        spent,
        scores.first_loss,
        scores.second_loss,
        at.get(("induction", head.layer, head.head)),
        previous,
        at.get(("previous", previous.layer, previous.head)),
    )


@dataclass(frozen=True, eq=False)
class RepeatedReading:
    """Random tokens read twice: their `ids` (position,) and the patterns (layer, head, query, key)."""

    ids: tuple[int, ...]
    patterns: np.ndarray = field(repr=False)


def patterns_twice(model: Transformer, tokenizer: Tokenizer) -> RepeatedReading | None:
    """Returns the first draw of `head_scores`; None where `read_at` is."""
    once = read_at(model, tokenizer, 0)
    if once is None:
        return None
    ids = (*once, *once)
    return RepeatedReading(ids, record(model, ids, only={"pattern"}).stacked("pattern"))


@dataclass(frozen=True)
class HeadFormation:
    """The first evaluation at which a head had at least HALF: it reads the token before, or copies."""

    step: int
    kind: Kind
    layer: int
    head: int


def formed(looks: Iterable[tuple[int, HeadScores | None]]) -> tuple[HeadFormation, ...]:
    """Returns when heads formed, from (step, scores) in the order of a training: each head and kind once."""
    result: dict[tuple[Kind, int, int], HeadFormation] = {}
    for step, scores in looks:
        for kind in ("previous", "induction") if scores is not None else ():
            for layer, row in enumerate(getattr(scores, kind)):
                for head, score in enumerate(row):
                    if score >= HALF:
                        result.setdefault((kind, layer, head), HeadFormation(step, kind, layer, head))
    return tuple(sorted(result.values(), key=lambda one: one.step))
