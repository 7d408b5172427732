"""What curves of loss by position say: in bits, above their own sliding window, which schemes hold beyond
their training and which do not, and why T5 may not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import numpy as np

from engine.measure.positions.extrapolation import TIMES, Curve, farthest_bucket
from engine.measure.positions.t5_buckets import t5_weights
from engine.model import Transformer

Unit = Literal["nats", "bits"]
UNITS: dict[Unit, float] = {"nats": 1.0, "bits": 1 / math.log(2)}  # of each in a nat
HELD = 0.05  # nats: an increase up to this is called holding
K = TypeVar("K", bound=Hashable)


def in_unit(curve: Curve, unit: Unit) -> Curve:
    """The same curve with its means and errors in `unit` instead of nats."""
    scale = UNITS[unit]
    return replace(
        curve,
        mean=curve.mean * scale,
        error=curve.error * scale,
        tail=(curve.tail[0] * scale, curve.tail[1] * scale),
        excess={times: (mean * scale, error * scale) for times, (mean, error) in curve.excess.items()},
    )


def above_tail(curve: Curve) -> np.ndarray:
    """(bin,): the loss less that of the model's own sliding window."""
    found: np.ndarray = curve.mean - curve.tail[0]
    return found


@dataclass(frozen=True)
class Costs:
    """A row of the table, in one unit. `against_none` is the validation loss less that of the model without
    positions. `tail` and `more` are (mean, standard error); `more` by how many contexts are read, None where
    there is no answer.
    """

    validation: float
    against_none: float | None
    tail: tuple[float, float]
    more: Mapping[int, tuple[float, float] | None]


def costs(curve: Curve, validation: float, none: float | None, unit: Unit = "nats") -> Costs:
    """curve, and the validation losses of its model and of the model without positions (None: there is none),
    all in nats.
    """
    scale, shown = UNITS[unit], in_unit(curve, unit)
    more = {
        times: shown.excess[times] if np.isfinite(shown.excess[times][0]) else None for times in (2, TIMES)
    }
    against = None if none is None else (validation - none) * scale
    return Costs(validation * scale, against, shown.tail, more)


@dataclass(frozen=True)
class Reach(Generic[K]):
    """Names of curves and what TIMES contexts cost them more, in nats, least first: those that hold, and
    those that do not. A curve without an answer is in neither.
    """

    held: Mapping[K, float]
    lost: Mapping[K, float]


def reach_of(curves: Mapping[K, Curve]) -> Reach[K]:
    """Curves in nats."""
    far = {name: c.excess[TIMES][0] for name, c in curves.items() if np.isfinite(c.excess[TIMES][0])}
    order = sorted(far, key=lambda name: far[name])
    return Reach(
        {name: far[name] for name in order if far[name] <= HELD},
        {name: far[name] for name in order if far[name] > HELD},
    )


def least(losses: Mapping[K, float]) -> K:
    """The name of the smallest loss.

    >>> least({"a": 2.0, "b": 1.5})
    'b'
    """
    return min(losses, key=lambda name: losses[name])


@dataclass(frozen=True)
class FarBuckets:
    """T5's buckets in a model: those up to `last` are met in training, those from there up to `end` never.

    `met` is what bucket `last` has learned, mean over heads; `unmet` the largest |bias| of those never met.
    `factor`: how many times the weight that distances in bucket `last` get is given to what is farther, where
    the bias is near 0.
    """

    last: int
    end: int
    met: float
    unmet: float

    @property
    def factor(self) -> float:
        return math.exp(-self.met)


def far_buckets(model: Transformer) -> FarBuckets | None:
    """None where the context reaches into every bucket, and for a model without T5's bias."""
    weights, last = t5_weights(model), farthest_bucket(model.config)  # (bucket, head)
    if weights is None or last + 1 >= len(weights):
        return None
    far = float(np.abs(weights[last + 1 :]).max())
    return FarBuckets(last, len(weights) - 1, float(weights[last].mean()), far)
