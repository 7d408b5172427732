"""Schemes that speak in distances: ALiBi's slopes and T5's buckets, as tables, and what they do to a pattern.

The numbers come from `engine.parts.positions` (`Alibi`, `alibi_slopes`, `t5_bucket`, `T5Bias`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.config import ModelConfig, ResolvedConfig
from engine.errors import ShapeError
from engine.measure.recording import Recording
from engine.model import Transformer
from engine.parts.positions import Alibi, T5Bias, alibi_slopes, t5_bucket
from engine.parts.registry import HEALTHY, Parts

# ALiBi ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Slopes:
    """One entry for each head, (head,) float64. The reaches are distances, in tokens, at which e^(-slope *
    distance) has come down to 1/e and to 1 percent.
    """

    slope: np.ndarray
    to_a_third: np.ndarray  # 1/e = 0.368
    to_a_percent: np.ndarray


def slopes(n_heads: int, multiplier: float = 1.0) -> Slopes:
    """Press et al. 2022, section 3; `multiplier` scales them all (1 is the paper's). Raises ShapeError for no
    heads.

    >>> slopes(8).to_a_third.tolist()
    [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]
    """
    if n_heads < 1 or not multiplier > 0:
        raise ShapeError(
            f"{n_heads} heads with slopes times {multiplier} are not possible: give at least one head and a"
            " factor above 0"
        )
    slope = multiplier * np.asarray(alibi_slopes(n_heads), dtype=np.float64)
    return Slopes(slope, 1 / slope, math.log(100) / slope)


def alibi_bias(n_heads: int, length: int, multiplier: float = 1.0, causal: bool = True) -> np.ndarray:
    """What is added to the scores: (head, query, key) float32, -slope * distance; -inf above the diagonal
    where there is a causal mask.
    """
    scheme = Alibi(ModelConfig(d_model=n_heads, n_heads=n_heads, position="alibi").resolved())
    table = (
        multiplier * scheme.prepare(length, torch.zeros(1)).bias(torch.zeros(n_heads, length, length)).numpy()
    )
    return np.where(_visible(length, causal), table, -np.inf).astype(np.float32)


def _visible(length: int, causal: bool) -> np.ndarray:
    """(query, key): may it be looked at?"""
    return np.tri(length, dtype=bool) if causal else np.ones((length, length), dtype=bool)


@dataclass(frozen=True, eq=False)
class Effect:
    """The same scores without and with a bias, (query, key), and the patterns they become. Distances are
    means over queries, in tokens.
    """

    bare: np.ndarray
    biased: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def distance_before(self) -> float:
        return mean_distance(self.before)

    @property
    def distance_after(self) -> float:
        return mean_distance(self.after)


def alibi_effect(scores: np.ndarray, slope: float, causal: bool, own_slope: float = 0.0) -> Effect:
    """scores (query, key), before the mask. `own_slope` is what the scores hold already (an ALiBi model's):
    it is taken out first.
    """
    place = np.arange(len(scores))
    distance = np.abs(place[:, None] - place[None, :])
    hidden = np.where(_visible(len(scores), causal), 0.0, -np.inf)
    bare = scores.astype(np.float64) + own_slope * distance + hidden
    biased = bare - slope * distance
    return Effect(bare, biased, softmax(bare), softmax(biased))


def own_slope(config: ResolvedConfig, head: int, parts: Parts = HEALTHY) -> float:
    """The slope that a head's recorded scores hold already: 0 unless the model's scheme is ALiBi."""
    return alibi_slopes(config.n_heads)[head] if parts.position(config) is Alibi else 0.0


def distances_of_heads(recording: Recording, layer: int, multiplier: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean distance of every head of a layer without and with ALiBi's bias: two arrays (head,), tokens."""
    c = recording.config
    steps = slopes(c.n_heads, multiplier).slope
    scores = recording[f"blocks.{layer}.scores"]
    own = [own_slope(c, h, recording.parts) for h in range(c.n_heads)]
    effects = [alibi_effect(scores[h], float(steps[h]), c.causal, own[h]) for h in range(c.n_heads)]
    return np.array([e.distance_before for e in effects]), np.array([e.distance_after for e in effects])


def softmax(scores: np.ndarray) -> np.ndarray:
    """Over the last axis, in float64."""
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def mean_distance(pattern: np.ndarray) -> float:
    """How far a head looks: sum of weight * |query - key|, mean over queries, in tokens."""
    place = np.arange(len(pattern))
    return float((pattern * np.abs(place[:, None] - place[None, :])).sum(-1).mean())


# T5 ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bucket:
    """A bucket and the offsets key - query that fall into it, `first` the nearest. `last` is None where it
    has no end.
    """

    number: int
    first: int
    last: int | None

    @property
    def words(self) -> str:
        """The offsets, as they are read.

        >>> Bucket(0, 0, 0).words, Bucket(16, -16, -18).words, Bucket(31, -113, None).words
        ('0', '-16 to -18', '-113 and beyond')
        """
        if self.last is None:
            return f"{self.first} and beyond"
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


def exact_buckets(buckets: int, bidirectional: bool) -> int:
    """How many distances, on each side, have a bucket of their own: half of a side's buckets (0 is among
    them).
    """
    return buckets // (4 if bidirectional else 2)


def bucket_of(offsets: np.ndarray, bidirectional: bool, buckets: int, max_distance: int) -> np.ndarray:
    """The bucket of each offset key - query, int64. Raises ShapeError where the logarithm has no room between
    the exact distances and the maximum.
    """
    exact = exact_buckets(buckets, bidirectional)
    if exact < 1 or max_distance <= exact:
        raise ShapeError(
            f"{buckets} buckets up to distance {max_distance} leave no room for the logarithmic ones: take a"
            f" maximum above {max(exact, 1)}"
        )
    return t5_bucket(
        torch.from_numpy(np.asarray(offsets, dtype=np.int64)), bidirectional, buckets, max_distance
    ).numpy()


def bucket_ranges(bidirectional: bool, buckets: int, max_distance: int) -> list[Bucket]:
    """Every bucket that some offset falls into, by number. Later tokens (offset > 0) have buckets of their
    own only without a mask.
    """
    reach = 2 * max_distance
    found: dict[int, list[int]] = {}
    offsets = np.array(sorted(range(-reach, (reach if bidirectional else 0) + 1), key=abs))
    for offset, bucket in zip(
        offsets.tolist(), bucket_of(offsets, bidirectional, buckets, max_distance).tolist(), strict=True
    ):
        found.setdefault(bucket, []).append(offset)
    return [
        Bucket(n, members[0], None if abs(members[-1]) == reach else members[-1])
        for n, members in sorted(found.items())
    ]


def t5_weights(model: Transformer) -> np.ndarray | None:
    """The learned bias of each bucket and head, (bucket, head) float32; None for a model of another
    scheme.
    """
    return (
        model.positions.weight.detach().float().cpu().numpy() if isinstance(model.positions, T5Bias) else None
    )


def t5_bias(weight: np.ndarray, offsets: Sequence[int] | np.ndarray, bidirectional: bool) -> np.ndarray:
    """weight (bucket, head) -> what each head adds to a score at each offset key - query: (head, offset), by
    the engine's own buckets.
    """
    return weight[bucket_of(np.asarray(offsets), bidirectional, T5Bias.buckets, T5Bias.max_distance)].T


def t5_matrix(weight: np.ndarray, head: int, length: int, bidirectional: bool) -> np.ndarray:
    """One head's bias as it is added to the scores: (query, key) float32, -inf above the diagonal where there
    is a causal mask.
    """
    place = np.arange(length)
    offsets = place[None, :] - place[:, None]
    table = t5_bias(weight, offsets.ravel(), bidirectional)[head].reshape(length, length)
    return np.where(_visible(length, not bidirectional), table, -np.inf).astype(np.float32)


def slope_of_learned(bias: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Least-squares slope of each head's bias against the distance: bias (head, distance) -> (head,) per
    token. Below 0: near tokens are favoured.
    """
    x = distances - distances.mean()
    return (bias - bias.mean(-1, keepdims=True)) @ x / float((x * x).sum())
