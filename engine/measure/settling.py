"""What is read off the logit lens: where tokens are settled, what stands in one cell, and how far its colours
reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.measure.lens import SHOWN, Lens


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
