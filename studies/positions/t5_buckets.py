"""T5's relative positions: distances sorted into buckets, and the bias that each head has learned for each.

The numbers come from `engine.parts.positions` (`t5_bucket`, `T5Bias`). Raffel et al. 2020, 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.errors import ShapeError
from engine.model import Transformer
from engine.parts.positions import T5Bias, t5_bucket
from studies.positions.alibi import visible


@dataclass(frozen=True)
class Bucket:
    """A bucket and the offsets key - query in it, `first` the nearest; `last` is None for an open end."""

    number: int
    first: int
    last: int | None

    @property
    def words(self) -> str:
        """The offsets in words.

        >>> Bucket(0, 0, 0).words, Bucket(16, -16, -18).words, Bucket(31, -113, None).words
        ('0', '-16 to -18', '-113 and beyond')
        """
        if self.last is None:
            return f"{self.first} and beyond"
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


def exact_buckets(buckets: int, bidirectional: bool) -> int:
    """Returns how many distances, on each side, have a bucket of their own: half of a side's buckets."""
    return buckets // (4 if bidirectional else 2)


def bucket_of(offsets: np.ndarray, bidirectional: bool, buckets: int, max_distance: int) -> np.ndarray:
    """Returns the bucket of each offset key - query, int64. Raises ShapeError without log buckets."""
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
    """Returns every bucket that an offset falls into, by number; later tokens' only without a mask."""
    reach = 2 * max_distance
    result: dict[int, list[int]] = {}
    offsets = np.array(sorted(range(-reach, (reach if bidirectional else 0) + 1), key=abs))
    for offset, bucket in zip(
        offsets.tolist(), bucket_of(offsets, bidirectional, buckets, max_distance).tolist(), strict=True
    ):
        result.setdefault(bucket, []).append(offset)
    return [
        Bucket(n, members[0], None if abs(members[-1]) == reach else members[-1])
        for n, members in sorted(result.items())
    ]


@dataclass(frozen=True)
class Buckets:
    """All buckets that some offset falls into. The first `exact` distances (on each side, without a mask)
    have one each; the last takes everything from distance `open_from` on; `unused` are reached by none.
    """

    ranges: tuple[Bucket, ...]
    exact: int
    open_from: int
    unused: int


def buckets_of(bidirectional: bool, buckets: int, max_distance: int) -> Buckets:
    """Summarises the buckets. Raises ShapeError as `bucket_of` does.

    >>> r = buckets_of(True, 32, 128)
    >>> r.exact, r.open_from, r.unused
    (8, 91, 1)
    """
    ranges = tuple(bucket_ranges(bidirectional, buckets, max_distance))
    last = next(b for b in reversed(ranges) if b.last is None)
    exact = exact_buckets(buckets, bidirectional)
    return Buckets(ranges, exact, abs(last.first), buckets - len(ranges))


def t5_weights(model: Transformer) -> np.ndarray | None:
    """Returns the learned bias of each bucket and head, (bucket, head) float32; None for other schemes."""
    return (
        model.positions.weight.detach().float().cpu().numpy() if isinstance(model.positions, T5Bias) else None
    )


def t5_bias(weight: np.ndarray, offsets: Sequence[int] | np.ndarray, bidirectional: bool) -> np.ndarray:
    """Returns each head's bias at each offset key - query: weight (bucket, head) -> (head, offset)."""
    return weight[bucket_of(np.asarray(offsets), bidirectional, T5Bias.buckets, T5Bias.max_distance)].T


def t5_matrix(weight: np.ndarray, head: int, length: int, bidirectional: bool) -> np.ndarray:
    """Returns one head's bias on the scores: (query, key) float32, -inf above a causal diagonal."""
    place = np.arange(length)
    offsets = place[None, :] - place[:, None]
    table = t5_bias(weight, offsets.ravel(), bidirectional)[head].reshape(length, length)
    return np.where(visible(length, not bidirectional), table, -np.inf).astype(np.float32)


def slope_of_learned(bias: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Returns the least-squares slope of each head's bias by distance: -> (head,) per token."""
    x = distances - distances.mean()
    return (bias - bias.mean(-1, keepdims=True)) @ x / float((x * x).sum())


# What was learned -------------------------------------------------------------------------------

FARTHEST = 64  # distances that are read off a learned bias, at most
MOST = 50.0  # of an exponent that is written down: e^50 is 5e21


@dataclass(frozen=True)
class Unmet:
    """The buckets that no distance within the context meets, and their mean beside the farthest's."""

    buckets: int
    distance: int
    mean: float
    met_mean: float


@dataclass(frozen=True, eq=False)
class LearnedBias:
    """The preferences of a learned bias among the distances 0 to `last` back.

    By head, (head,): `favours` is the distance with the largest bias, `alibi_slope` the mean fall of the bias
    per token, by least squares, `spread` the largest bias minus the smallest. `unmet` is None where every
    bucket is met within the context.
    """

    last: int
    favours: np.ndarray
    alibi_slope: np.ndarray
    spread: np.ndarray = field(repr=False)
    unmet: Unmet | None

    @property
    def loudest(self) -> int:
        """The head whose bias varies the most."""
        return int(self.spread.argmax())

    @property
    def factor(self) -> float:
        """The factor between the weights of the loudest head's best and worst distances: e^spread."""
        return math.exp(min(float(self.spread[self.loudest]), MOST))


def learned_bias(weight: np.ndarray, causal: bool, context: int) -> LearnedBias:
    """Reads off weight (bucket, head) of a model with this context, at distances back."""
    past = np.arange(min(context, FARTHEST))
    bias = t5_bias(weight, -past, not causal)  # (head, distance)
    slope = slope_of_learned(bias, past) if len(past) > 1 else np.zeros(len(bias))
    ranges = bucket_ranges(not causal, T5Bias.buckets, T5Bias.max_distance)
    beyond = [b for b in ranges if abs(b.first) >= context]
    unmet = None
    if beyond:
        mean = float(weight[[b.number for b in beyond]].mean())
        unmet = Unmet(len(beyond), min(abs(b.first) for b in beyond), mean, float(bias[:, -1].mean()))
    return LearnedBias(int(past[-1]), past[bias.argmax(1)], -slope, bias.max(1) - bias.min(1), unmet)
