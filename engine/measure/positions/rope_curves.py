"""What RoPE's numbers say: which pair decides a score, what a score does with the distance, how many pairs go
round within a context, and the patterns of the two layouts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from engine.measure.positions.alibi import softmax
from engine.measure.positions.rope import (
    Layouts,
    frequencies,
    pair_terms,
    score_curve,
    turns,
    unturned,
)


@dataclass(frozen=True)
class Score:
    """q.k of two turned vectors before its scaling, and the pair that says most in it: `term` is what that
    one adds. `near`: its arrows are less than a quarter turn apart.
    """

    total: float
    pair: int
    term: float

    @property
    def near(self) -> bool:
        return self.term > 0


def score_at(
    q: np.ndarray, k: np.ndarray, query: int, key: int, base: float, d_rotary: int | None = None
) -> Score:
    """q (d_head,) at position `query` and k (d_head,) at `key`, of which the first d_rotary dimensions turn
    (None: all).
    """
    terms = pair_terms(q, k, query, key, base, d_rotary)
    pair = int(np.abs(terms).argmax())
    rest = unturned(q, k, 2 * len(terms))
    return Score(float(terms.sum()) + rest, pair, float(terms[pair]))


# Score against distance -------------------------------------------------------------------------


def mean_score(
    q: np.ndarray, k: np.ndarray, base: float, distances: np.ndarray, d_rotary: int | None = None
) -> np.ndarray:
    """The score q.k / sqrt(d_head), mean over every pair of a row of q and a row of k (position, d_head)
    before rotation, had each pair that distance query - key: (distance,) float64. Only the first d_rotary
    dimensions turn (None: all).
    """
    curve = score_curve(q.mean(0), k.mean(0), base, distances, d_rotary)
    found: np.ndarray = curve / math.sqrt(q.shape[1])
    return found


def some_distances(reach: int, most: int = 1_000) -> np.ndarray:
    """The distances 0 to `most`, and about as many more up to `reach`, evenly spaced: (distance,), ascending.

    >>> some_distances(16, 4).tolist()
    [0, 1, 2, 3, 4, 7, 10, 13, 16]
    """
    far = np.linspace(most, max(reach, most), most + 1).round().astype(np.int64)
    found = np.unique(np.concatenate((np.arange(most + 1), far)))
    return found[found <= reach]


@dataclass(frozen=True)
class Decay:
    """A score over some of the distances 0 to `reach`. `lowest` and `highest` are (score, distance), the
    first of equal ones.

    `falls`: it begins above 0 and is nowhere higher than there. Only then `below_half` is the first distance
    at which it is less than half of its start, None where it never is; `stays`: from there on it remains so.
    """

    start: float
    last: float
    reach: int
    lowest: tuple[float, int]
    highest: tuple[float, int]
    falls: bool
    below_half: int | None
    stays: bool


def decay(distances: np.ndarray, scores: np.ndarray) -> Decay:
    """distances (n,) ascending from 0, scores (n,) at them."""
    low, high = int(scores.argmin()), int(scores.argmax())
    start = float(scores[0])
    falls = start > 0 and high == 0
    below = np.flatnonzero(scores < start / 2) if falls else np.zeros(0, np.int64)
    return Decay(
        start,
        float(scores[-1]),
        int(distances[-1]),
        (float(scores[low]), int(distances[low])),
        (float(scores[high]), int(distances[high])),
        falls,
        int(distances[below[0]]) if below.size else None,
        bool(below.size and (scores[below[0] :] <= start / 2).all()),
    )


# Turns within a context -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Turns:
    """Full turns of each pair within a context, (pair,), fastest first; `theta` (pair,) in radians a
    position.
    """

    count: np.ndarray = field(repr=False)
    theta: np.ndarray = field(repr=False)

    @property
    def positions(self) -> np.ndarray:
        """Positions that one turn takes: (pair,)."""
        found: np.ndarray = 2 * math.pi / self.theta
        return found

    @property
    def incomplete(self) -> np.ndarray:
        """(pair,) bool: pairs that never complete a turn."""
        return self.count < 1

    @property
    def never(self) -> int:
        """How many never complete a turn."""
        return int(self.incomplete.sum())


def turns_within(d_rotary: int, base: float, context: int) -> Turns:
    """Of the pairs of `d_rotary` dimensions. Raises ShapeError when that is odd.

    >>> turns_within(128, 10_000.0, 4_096).never
    18
    """
    return Turns(turns(d_rotary, base, context), frequencies(d_rotary, base))


# Layouts ----------------------------------------------------------------------------------------


def layout_pattern(found: Layouts, name: str, seen: np.ndarray) -> np.ndarray:
    """The pattern (query, key) of the scores that a layout gives: `name` is a field of `Layouts`, `seen`
    (query, key) bool what may be looked at.
    """
    scores: np.ndarray = getattr(found, name)
    return softmax(np.where(seen, scores, -np.inf))
