"""Attention on numbers small enough for pencil and paper. float64 throughout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import ShapeError
from engine.recording import softmax


@dataclass(frozen=True, eq=False)
class HandExample:
    """Every stage of multi-head attention, without W_Q, W_K, W_V and W_O: q, k and v are given."""

    q: np.ndarray  # (head, query, d_head)
    k: np.ndarray  # (head, key, d_head)
    v: np.ndarray  # (head, key, d_head)
    raw: np.ndarray  # (head, query, key): q k^T
    scaled: np.ndarray  # raw / sqrt(d_head)
    masked: np.ndarray  # -inf where a key is hidden
    pattern: np.ndarray  # softmax of it; rows sum to 1
    z: np.ndarray  # (head, query, d_head): pattern v
    out: np.ndarray  # (query, d): the heads side by side

    @property
    def d_head(self) -> int:
        return int(self.q.shape[-1])

    @property
    def first(self) -> tuple[tuple[int, float], ...]:
        """The key, from 1, with most of the first query's weight, and that weight, for each head."""
        rows = self.pattern[:, 0]
        return tuple((int(row.argmax()) + 1, float(row.max())) for row in rows)

    @property
    def most(self) -> float:
        """The smallest of the heads' largest weights."""
        return float(self.pattern.max(axis=-1).min())


def multi_head(
    q: Sequence[Sequence[float]],
    k: Sequence[Sequence[float]],
    v: Sequence[Sequence[float]],
    heads: int,
    hidden: Sequence[int] = (),
) -> HandExample:
    """Computes attention of q (query, d), k and v (key, d), rows of numbers; `hidden` keys are masked
    (Vaswani et al. 2017, 3.2). Raises ShapeError when the rows do not fit each other, when `heads` does not
    divide d, or when no key is visible.
    """
    rows = [*q, *k, *v]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or 0 in widths:
        raise ShapeError(
            "every row must have the same number of numbers; here there are rows of"
            f" {', '.join(str(n) for n in sorted(widths))}"
        )
    width = widths.pop()
    if len(k) != len(v):
        raise ShapeError(
            f"there are {len(k)} keys but {len(v)} values: every key needs the value that it leads to"
        )
    if heads < 1 or width % heads:
        raise ShapeError(f"{heads} heads cannot share {width} numbers evenly")
    qs, ks, vs = (_split(np.asarray(x, dtype=np.float64), heads) for x in (q, k, v))
    raw = qs @ ks.swapaxes(1, 2)
    scaled = raw / math.sqrt(width // heads)
    masked = _hide(scaled, hidden)
    pattern = softmax(masked)
    z = pattern @ vs
    return HandExample(qs, ks, vs, raw, scaled, masked, pattern, z, z.swapaxes(0, 1).reshape(len(q), width))


@dataclass(frozen=True)
class WeightByHand:
    """One weight of one head, written out: the numbers (q_i, k_i) whose products sum to `raw`, the score
    after the division, and the scores of the `seen` keys, among which it is shared out. `hidden` keys get 0.
    """

    pairs: tuple[tuple[float, float], ...]
    raw: float
    scaled: float
    seen: tuple[float, ...]
    hidden: bool
    weight: float


def weight_by_hand(example: HandExample, head: int, key: int) -> WeightByHand:
    """Returns the first query's weight on a key, both counted from 0."""
    row = example.masked[head, 0]
    q, k = example.q[head, 0].tolist(), example.k[head, key].tolist()
    return WeightByHand(
        tuple(zip(q, k, strict=True)),
        float(example.raw[head, 0, key]),
        float(example.scaled[head, 0, key]),
        tuple(row[np.isfinite(row)].tolist()),
        not math.isfinite(row[key]),
        float(example.pattern[head, 0, key]),
    )


@dataclass(frozen=True, eq=False)
class MaskExample:
    """One row of scores, masked before the softmax and after it. All (key,)."""

    scores: np.ndarray
    masked: np.ndarray  # -inf where hidden
    weights: np.ndarray  # softmax of `masked`: sums to 1
    unmasked: np.ndarray  # softmax of the scores: sums to 1, and sees what it must not
    masked_after: np.ndarray  # that, with the hidden weights set to 0: sums to less than 1

    @property
    def shift(self) -> float:
        """The number taken off each score before the exponential: 0, or the largest where e^s overflows."""
        largest = float(self.masked.max())
        return largest if abs(largest) > 50 else 0.0

    @property
    def exponentials(self) -> np.ndarray:
        """The powers e^(masked - shift); 0 where hidden."""
        return np.exp(self.masked - self.shift)

    @property
    def visible(self) -> tuple[int, ...]:
        """The keys that are not hidden; there is always one."""
        return tuple(int(i) for i in np.flatnonzero(np.isfinite(self.masked)))

    @property
    def exponents(self) -> tuple[float, ...]:
        """Returns score - shift of each visible key."""
        return tuple(float(self.scores[i] - self.shift) for i in self.visible)

    @property
    def total(self) -> float:
        """The sum of the exponentials, by which every one of them is divided."""
        return float(self.exponentials.sum())

    @property
    def late_sum(self) -> float:
        """The sum of the row when the mask comes after the softmax."""
        return float(self.masked_after.sum())

    @property
    def sums(self) -> tuple[float, float, float]:
        """The sums of the rows `weights`, `unmasked` and `masked_after`."""
        return float(self.weights.sum()), float(self.unmasked.sum()), self.late_sum

    @property
    def lost(self) -> float:
        """The share that the hidden keys had taken before they were hidden."""
        return 1 - self.late_sum


def masking(scores: Sequence[float], hidden: Sequence[int]) -> MaskExample:
    """Masks a row before the softmax and after it. Raises ShapeError when no score is visible."""
    row = np.asarray(scores, dtype=np.float64)
    if row.ndim != 1 or not row.size:
        raise ShapeError("give at least one score")
    masked = _hide(row, hidden)
    unmasked = softmax(row)
    late = unmasked.copy()
    late[list(hidden)] = 0.0
    return MaskExample(row, masked, softmax(masked), unmasked, late)


def _split(x: np.ndarray, heads: int) -> np.ndarray:
    """Splits the heads: (rows, d) -> (head, rows, d_head)."""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def _hide(scores: np.ndarray, hidden: Sequence[int]) -> np.ndarray:
    keys = scores.shape[-1]
    if any(not 0 <= i < keys for i in hidden):
        raise ShapeError(f"a hidden key must be one of 0 to {keys - 1}")
    if len(set(hidden)) == keys:
        raise ShapeError("every key is hidden: a softmax over nothing has no value, so leave at least one")
    masked = scores.copy()
    masked[..., list(hidden)] = -np.inf
    return masked
