"""What RoPE's numbers say: which pair decides a score, what a score does with the distance, how many pairs go
round within a context, and the patterns of the two layouts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from engine.measure.distance import softmax, visible
from engine.measure.rotary import Layouts, frequencies, score_curve, turns


@dataclass(frozen=True)
class PairShare:
    """The pair that says most in a score: `term` is what it adds. `near`: its arrows are less than a quarter
    turn apart.
    """

    pair: int
    term: float

    @property
    def near(self) -> bool:
        return self.term > 0


def strongest_pair(terms: np.ndarray) -> PairShare:
    """terms (pair,): what each pair adds to q.k.

    >>> strongest_pair(np.array([0.5, -2.0, 1.0]))
    PairShare(pair=1, term=-2.0)
    """
    pair = int(np.abs(terms).argmax())
    return PairShare(pair, float(terms[pair]))


# Score against distance -------------------------------------------------------------------------


def mean_score(q: np.ndarray, k: np.ndarray, base: float, distances: np.ndarray) -> np.ndarray:
    """The score q.k / sqrt(d_head), mean over every pair of a row of q and a row of k (position, d_head)
    before rotation, had each pair that distance query - key: (distance,) float64.
    """
    found: np.ndarray = score_curve(q.mean(0), k.mean(0), base, distances) / math.sqrt(q.shape[1])
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


def layout_pattern(found: Layouts, name: str, causal: bool) -> np.ndarray:
    """The pattern (query, key) of the scores that a layout gives: `name` is a field of `Layouts`."""
    scores: np.ndarray = getattr(found, name)
    return softmax(np.where(visible(len(scores), causal), scores, -np.inf))
