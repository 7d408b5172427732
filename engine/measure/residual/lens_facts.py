"""What is read off the logit lens: where tokens are settled, what stands in one cell, and how far its colours
reach.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from engine.measure.residual.lens import SHOWN, Lens


@dataclass(frozen=True, eq=False)
class Settling:
    """Where the guesses come to stay. `counts` and `by` (depth,): tokens that are settled at a depth, and at
    it or before; `half`: the first depth by which half of all `tokens` are settled. `kl` (depth,): mean
    distance from the output, nats; `step`: the depth that comes closest to the output in one go, None where
    none does.
    """

    counts: np.ndarray
    by: np.ndarray
    half: int
    tokens: int
    kl: np.ndarray
    step: int | None


def settling(lens: Lens) -> Settling:
    """Counts over the tokens of the text."""
    tokens = len(lens.settled)
    counts = np.bincount(lens.settled, minlength=len(lens.guess))
    by = np.cumsum(counts)
    kl = lens.kl.mean(1)
    steps = kl[:-1] - kl[1:]
    largest = int(steps.argmax())
    step = largest + 1 if steps[largest] > 0 else None
    return Settling(counts, by, int(np.argmax(2 * by >= tokens)), tokens, kl, step)


@dataclass(frozen=True, eq=False)
class Cell:
    """One depth at one token: its likeliest `tokens`, best first, with their probabilities `here` and at the
    `output`, all (token,); `kl` from here to the output, nats; the `final` guess, and the depth from which on
    it stays on top.
    """

    tokens: np.ndarray
    here: np.ndarray
    output: np.ndarray
    kl: float
    final: int
    settled: int


def cell(lens: Lens, depth: int, position: int, count: int = SHOWN) -> Cell:
    """What a cell of the table holds: `count` tokens at most, and no more than the lens has kept."""
    tokens = lens.top(depth, position, count)
    here, output = (kept[depth, position, :count] for kept in (lens.here, lens.output))
    final, settled = int(lens.guess[-1, position]), int(lens.settled[position])
    return Cell(tokens, here, output, float(lens.kl[depth, position]), final, settled)


@dataclass(frozen=True)
class Reach:
    """Where a scale for KL ends, nats: the largest of all depths above the embedding, which is often far out;
    `is_short` where the embedding lies beyond it.
    """

    top: float
    is_short: bool


def reach(lens: Lens) -> Reach:
    """The scale that leaves the embedding's row out."""
    top = float(lens.kl[1:].max())
    return Reach(top, bool(lens.kl[0].max() > top))


# One token, from block to block -------------------------------------------------------------------


def telling(
    guesses: np.ndarray, following: Sequence[int | None], worth: np.ndarray, blanks: Collection[int]
) -> int:
    """The place of a text to begin with: where the final guess `guesses` (query,) is no blank and comes true
    (where nothing is `following` it may), of these the one with the largest `worth` (query,), the later of
    several. Where no guess comes true, one that is no blank; else any.
    """
    seen = np.array([int(guess) not in blanks for guess in guesses])
    true = np.array(
        [after is None or after == guess for guess, after in zip(guesses, following, strict=True)]
    )
    for kept in (seen & true, seen, np.ones(len(guesses), dtype=bool)):
        if kept.any():
            value = np.where(kept, worth, -np.inf)
            return int(len(value) - 1 - value[::-1].argmax())
    raise ValueError("there is no token to begin with")


def sureness(logits: np.ndarray) -> np.ndarray:
    """The probability of the likeliest token: logits (query, vocab) -> (query,)."""
    top = logits.max(-1, keepdims=True)
    sure: np.ndarray = 1 / np.exp(logits - top).sum(-1)
    return sure


def latest(lens: Lens, following: Sequence[int | None], blanks: Collection[int]) -> int:
    """`telling` where the answer settles last; of several, where the model is surest in the end."""
    worth = lens.settled + 0.999 * lens.probability[-1]
    return telling(lens.guess[-1], following, worth, blanks)


@dataclass(frozen=True, eq=False)
class Climb:
    """The guesses for one place, depth by depth. `depths` (row,) are shown, lowest first; `tokens` and
    `shares` (row, rank): the likeliest tokens there and their probabilities. `settled` is the depth from
    which on the final guess stays on top, `earlier` its probability one depth below (0 where it was not among
    those kept; at the embedding there is none below, and it is its own), `final` at the output.
    """

    depths: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray
    settled: int
    earlier: float
    final: float


def climb(lens: Lens, position: int, rows: int = 10, ranks: int = 4) -> Climb:
    """At most `rows` depths: the first, the last, where the answer settles and the one before, and others
    evenly between them.
    """
    depths, settled = len(lens.guess), int(lens.settled[position])
    chosen = _depths(depths, settled, rows)
    final, below = int(lens.guess[-1, position]), max(settled - 1, 0)
    there = np.flatnonzero(lens.likeliest[below, position] == final)
    earlier = float(lens.here[below, position, there[0]]) if len(there) else 0.0
    tokens, shares = (kept[chosen, position, :ranks] for kept in (lens.likeliest, lens.here))
    return Climb(chosen, tokens, shares, settled, earlier, float(lens.probability[-1, position]))


def _depths(count: int, settled: int, rows: int) -> np.ndarray:
    """
    >>> _depths(5, 3, 10).tolist(), _depths(31, 30, 6).tolist()
    ([0, 1, 2, 3, 4], [0, 10, 20, 29, 30])
    """
    if count <= rows:
        return np.arange(count)
    even = np.linspace(0, count - 1, rows - 2).round().astype(int).tolist()
    return np.array(sorted({*even, settled, max(settled - 1, 0)}))
