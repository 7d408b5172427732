"""Numbers for the screen: one head of tensors that have heads, the size of numbers, medians of seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

HEADS = ("head", "kv_head")  # axes of which one index is shown


def head_axis(axes: tuple[str, ...]) -> int | None:
    """Returns which axis is one of HEADS; None where there is none.

    >>> head_axis(("kv_head", "key", "d_head")), head_axis(("query", "d_model"))
    (0, None)
    """
    return next((i for i, axis in enumerate(axes) if axis in HEADS), None)


def take_index(
    values: np.ndarray, axes: tuple[str, ...], axis: int, index: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Returns the tensor at one index of an axis, and the axes that are left."""
    return np.take(values, index, axis=axis), (*axes[:axis], *axes[axis + 1 :])


def largest(values: np.ndarray) -> float:
    """Returns the largest size of the finite numbers; 0 where there is none."""
    return float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values)))


def extent(values: np.ndarray) -> tuple[float, float]:
    """Returns (least, largest) of the finite numbers; (0, 0) where there is none.

    >>> extent(np.array([2.0, np.nan, -1.0])), extent(np.array([np.inf]))
    ((-1.0, 2.0), (0.0, 0.0))
    """
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def seed_median(values: Iterable[float]) -> float:
    """Returns the median of a number over seeds, one at least.

    >>> seed_median([3.0, 1.0, 2.0])
    2.0
    """
    return float(np.median([*values]))


def median_curve(curves: Sequence[np.ndarray | Sequence[float]] | np.ndarray) -> np.ndarray:
    """Returns the median over seeds at every step: (seed, step) -> (step,)."""
    return np.asarray(np.median(np.asarray(curves, dtype=np.float64), axis=0))
