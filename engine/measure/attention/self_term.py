"""Why attention does not compare tokens as they are: what is most like a token is itself, and one matrix for
both sides keeps it so. Vaswani et al. 2017, 3.2.1, have two: W_Q and W_K.

With entries of mean 0 and variance 1, e.e is a sum of d squares and e.f one of d products: divided by sqrt(d)
the first is about sqrt(d), and the others spread by about 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from engine.measure.attention.scaling import softmax

Way = Literal["raw", "shared", "separate"]
WAYS: tuple[Way, ...] = get_args(Way)


@dataclass(frozen=True, eq=False)
class Compared:
    """One way to compare tokens: `scores` and the softmax's `weights` of them, (query, key)."""

    way: Way
    scores: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)

    @property
    def own_score(self) -> float:
        """Of a token with itself, mean."""
        return float(np.diag(self.scores).mean())

    @property
    def other_spread(self) -> float:
        """Standard deviation of the scores with the others."""
        return float(self.scores[~np.eye(len(self.scores), dtype=bool)].std())

    @property
    def own_weight(self) -> float:
        """What a token gives to itself, mean."""
        return float(np.diag(self.weights).mean())


def compared(width: int, seed: int = 0, tokens: int = 8) -> dict[Way, Compared]:
    """`tokens` vectors e (token, d) with normal entries, compared in each of WAYS, all without a mask:

    raw e.f / sqrt(d); shared (e W).(f W) / sqrt(d); separate (e W_Q).(f W_K) / sqrt(d), with matrices (d, d)
    whose entries have variance 1/d, so that q and k have entries of variance 1, too.
    """
    rng = np.random.default_rng((seed, width))
    e = rng.standard_normal((tokens, width))
    w_q, w_k = (rng.standard_normal((width, width)) / math.sqrt(width) for _ in range(2))
    pairs: dict[Way, tuple[np.ndarray, np.ndarray]] = {
        "raw": (e, e),
        "shared": (e @ w_k, e @ w_k),
        "separate": (e @ w_q, e @ w_k),
    }
    found: dict[Way, Compared] = {}
    for way, (q, k) in pairs.items():
        scores = q @ k.T / math.sqrt(width)
        found[way] = Compared(way, scores, softmax(scores))
    return found
