"""Is there a head that copies, and one that reads the token before? One score for each head at any moment of
a training: the measure of `engine.measure.induction`, over a few draws. And when such heads formed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.measure.habits import Named
from engine.measure.induction import drawn, ordered, ordinary, read_twice
from engine.model import Transformer
from engine.tokenizers import Tokenizer, token_bytes
from engine.training.records import Grid, HeadScores

COUNT, DRAWS = 24, 4  # different tokens that are read twice; draws over which is averaged
HALF = 0.5  # of its weight: from here on a head has formed

Kind = Literal["previous", "induction"]


def read_at(model: Transformer, tokenizer: Tokenizer, seed: int) -> tuple[int, ...] | None:
    """The tokens of one draw, read twice in a row by `head_scores`; None for a model without attention,
    without the causal mask, or too small to read two different tokens twice.
    """
    config = model.config
    pool = ordinary(token_bytes(tokenizer))
    count = min(COUNT, config.context // 2, len(pool))
    if count < 2 or not (model.parts.mixer(config).present and config.causal):
        return None
    return drawn(pool, count, seed)


def head_scores(model: Transformer, tokenizer: Tokenizer) -> HeadScores | None:
    """Means over DRAWS draws of random tokens that are read twice; None where `read_at` is."""
    draws = [read_at(model, tokenizer, seed) for seed in range(DRAWS)]
    found = [read_twice(model, once) for once in draws if once is not None]
    if not found:
        return None
    induction, previous = (
        tuple(tuple(float(score) for score in row) for row in np.mean(grids, axis=0))
        for grids in ([one.scores for one in found], [one.previous for one in found])
    )
    first, second = (
        float(np.mean(losses))
        for losses in ([one.first_loss for one in found], [one.second_loss for one in found])
    )
    return HeadScores(induction, previous, first, second)


def strongest(grid: Grid) -> Named:
    """The head with the largest score; of equal ones the lower."""
    return ordered(np.array(grid))[0]


@dataclass(frozen=True)
class Formed:
    """The first look at which a head had at least HALF: it reads the token before, or copies."""

    step: int
    kind: Kind
    layer: int
    head: int


def formed(looks: Iterable[tuple[int, HeadScores | None]]) -> tuple[Formed, ...]:
    """When heads formed, from (step, scores) in the order of a training: each head and kind once."""
    found: dict[tuple[Kind, int, int], Formed] = {}
    for step, scores in looks:
        for kind in ("previous", "induction") if scores is not None else ():
            for layer, row in enumerate(getattr(scores, kind)):
                for head, score in enumerate(row):
                    if score >= HALF:
                        found.setdefault((kind, layer, head), Formed(step, kind, layer, head))
    return tuple(sorted(found.values(), key=lambda one: one.step))
