"""The reason for dividing scores by sqrt(d_k): random queries' scores and softmax.

With entries of mean 0 and variance 1, q.k is a sum of d_k products of variance 1: its spread is sqrt(d_k)
(Vaswani et al. 2017, 3.2.1). And why W_Q and W_K are two: e.e is a sum of d squares, so a token compared with
one matrix on both sides finds itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.recording import softmax
from studies.attention.heads import entropy

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
KEYS = 64  # that a query chooses among
QUERIES = 256  # over which is averaged


@dataclass(frozen=True, eq=False)
class ScoreScaling:
    """Scores q.k * d_k^-exponent at each width; all (width,) but `example`, one query's weights at the last
    width, (key,), largest first. `spread` is the scores' standard deviation, `entropy` the softmax's in nats,
    `jacobian` the Frobenius norm of dp/ds, `slope` the mean |dp_i/ds_j| over all i and j.
    """

    widths: np.ndarray
    exponent: float
    spread: np.ndarray
    entropy: np.ndarray
    jacobian: np.ndarray
    slope: np.ndarray
    example: np.ndarray

    @property
    def expected(self) -> np.ndarray:
        """The spread in theory, d_k^(1/2 - exponent): (width,)."""
        return self.widths ** (0.5 - self.exponent)


def scaling(widths: tuple[int, ...], exponent: float, seed: int = 0) -> ScoreScaling:
    """Measures on normal q (QUERIES, d_k) and k (KEYS, d_k), drawn by seed and width."""
    rows = [_at(width, exponent, seed) for width in widths]
    spreads, entropies, jacobians, slopes = (np.array([row[i] for row in rows]) for i in range(4))
    return ScoreScaling(np.array(widths), exponent, spreads, entropies, jacobians, slopes, rows[-1][4])


def _at(width: int, exponent: float, seed: int) -> tuple[Any, ...]:
    """Returns (spread, entropy, jacobian, slope, example) at one width."""
    rng = np.random.default_rng((seed, width))
    q, k = (rng.standard_normal((count, width), dtype=np.float32) for count in (QUERIES, KEYS))
    scores = (q @ k.T).astype(np.float64) * width**-exponent
    p = softmax(scores)
    means = (float(values.mean()) for values in (entropy(p), jacobian_norm(p), mean_slope(p)))
    return float(scores.std()), *means, np.sort(p[0])[::-1]


def spread(width: int, seed: int = 0, count: int = 1024) -> float:
    """Returns the standard deviation of q.k, unscaled, over all pairs of `count` random queries and keys."""
    rng = np.random.default_rng((seed, width))
    q, k = (rng.standard_normal((count, width), dtype=np.float32) for _ in range(2))
    return float((q @ k.T).std(dtype=np.float64))


def jacobian_norm(p: np.ndarray) -> np.ndarray:
    """Returns the Frobenius norm of the softmax's Jacobian dp_i/ds_j = p_i (1[i=j] - p_j): (..., key) ->
    (...). Its square is sum p^2 - 2 sum p^3 + (sum p^2)^2. Zero where one weight is 1.
    """
    squares = (p**2).sum(-1)
    return np.sqrt(np.maximum(squares - 2 * (p**3).sum(-1) + squares**2, 0.0))


def mean_slope(p: np.ndarray) -> np.ndarray:
    """Returns the mean |dp_i/ds_j| over all i and j, 2 (1 - sum p^2) / n^2: (..., key) -> (...)."""
    return 2 * (1 - (p**2).sum(-1)) / p.shape[-1] ** 2


def weight_among_zeros(score: float, zeros: int) -> float:
    """Returns the softmax weight of one score among `zeros` scores of 0: e^s / (e^s + zeros).

    >>> round(weight_among_zeros(14, 99), 4)
    0.9999
    """
    return 1 / (1 + zeros * math.exp(-score))


def weight_of_a_zero(score: float, zeros: int) -> float:
    """Returns the weight of each of the zeros beside it: 1 / (e^s + zeros).

    >>> f"{weight_of_a_zero(14, 99):.1e}"
    '8.3e-07'
    """
    return math.exp(-score) * weight_among_zeros(score, zeros)


@dataclass(frozen=True)
class Theory:
    """The expected numbers at one width: the scores' spread without a scale and with it, the largest entropy
    (nats) and mean slope of a softmax over so many keys.
    """

    plain_spread: float
    spread: float
    entropy: float
    slope: float


def theory(width: int, exponent: float) -> Theory:
    """Returns sqrt(d_k), d_k^(1/2 - exponent), and of equal weights ln n and 2 (1 - 1/n) / n^2."""
    slope = 2 * (1 - 1 / KEYS) / KEYS**2
    return Theory(math.sqrt(width), width ** (0.5 - exponent), math.log(KEYS), slope)


@dataclass(frozen=True)
class AmongZeros:
    """One score among zeros: e^score, its weight and each zero's; score and weight over sqrt(width)."""

    exponential: float
    weight: float
    each_zero: float  # what every one of the zeros gets beside it
    divided: float
    divided_weight: float


def among_zeros(score: float, zeros: int, width: int) -> AmongZeros:
    """Computes the softmax of one score among `zeros` scores of 0, without and with the scale."""
    divided = score / math.sqrt(width)
    weights = (weight_among_zeros(s, zeros) for s in (score, divided))
    weight, small = weights
    return AmongZeros(math.exp(score), weight, weight_of_a_zero(score, zeros), divided, small)


CHOICES = 16  # keys of the one query that is drawn


@dataclass(frozen=True, eq=False)
class SampleQuery:
    """One query's weights over CHOICES keys, (key,): of the scores q.k as they are, and divided by sqrt(d_k).
    `spread` is their standard deviation in theory, sqrt(d_k).
    """

    width: int
    spread: float
    scores: np.ndarray
    plain: np.ndarray
    scaled: np.ndarray

    @property
    def best(self) -> int:
        """The key with the largest weight."""
        return int(self.plain.argmax())

    @property
    def most_plain(self) -> float:
        """The largest weight without a scale."""
        return float(self.plain.max())

    @property
    def most_scaled(self) -> float:
        """The largest weight with it."""
        return float(self.scaled.max())


def sample_query(width: int, seed: int = 0) -> SampleQuery:
    """Draws a normal query (d_k,) and CHOICES keys (key, d_k); a wider one begins as a narrower."""
    rng = np.random.default_rng(seed)
    both = rng.standard_normal((max(WIDTHS), CHOICES + 1))[:width]  # (d_k, query and keys)
    scores = both[:, 1:].T @ both[:, 0]
    root = math.sqrt(width)
    return SampleQuery(width, root, scores, softmax(scores), softmax(scores / root))


def crossing(plain: ScoreScaling, scaled: ScoreScaling) -> int | None:
    """Returns the largest width at which the unscaled softmax has the larger `jacobian`, or None."""
    more = [int(w) for w, a, b in zip(plain.widths, plain.jacobian, scaled.jacobian, strict=True) if a > b]
    return max((w for w in more if w > 1), default=None)
