"""Tables of position vectors, learned or sinusoidal: how alike two positions are, and whether the near ones
are more alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.measure.embeddings.table import (
    correlation,
    cosines,
    principal,
    project,
)
from engine.model import Transformer
from engine.parts.positions import Learned, sinusoidal_table


def learned_table(model: Transformer) -> np.ndarray | None:
    """The trained table (context, d_model) float32; None where the model has none."""
    return (
        model.positions.weight.detach().float().cpu().numpy()
        if isinstance(model.positions, Learned)
        else None
    )


def sinusoidal(length: int, d_model: int) -> np.ndarray:
    """The sinusoidal vectors of positions 0 .. length - 1, (length, d_model) float32; an odd width goes
    without its last cosine.
    """
    return sinusoidal_table(length, d_model + d_model % 2)[:, :d_model].numpy()


@dataclass(frozen=True, eq=False)
class Alike:
    """How alike two positions are. Cosines are of the vectors as they are; nothing is taken off."""

    cosines: np.ndarray = field(repr=False)  # (position, position)
    norms: np.ndarray = field(repr=False)  # (position,)
    by_distance: np.ndarray = field(
        repr=False
    )  # (distance,): mean cosine of two positions that far apart; entry 0 is 1
    spread: np.ndarray = field(
        repr=False
    )  # (distance,): standard deviation of those cosines; 0 where only the distance counts
    # between the cosine and -distance, over all pairs of different positions; NaN where nothing varies
    correlation: float


def alike(table: np.ndarray) -> Alike:
    """table (position, d_model), two positions at least."""
    found = cosines(table, centre=False)
    length = len(table)
    diagonals = [np.diagonal(found, k).astype(np.float64) for k in range(length)]
    first, second = np.triu_indices(length, 1)
    link = correlation(found[first, second], -(second - first).astype(np.float64))
    return Alike(
        found,
        np.linalg.norm(table, axis=1),
        np.array([d.mean() for d in diagonals]),
        np.array([d.std() for d in diagonals]),
        link,
    )


NEAR = 0.3  # correlation of the cosine with -distance above which a table has learned what "near" is


@dataclass(frozen=True, eq=False)
class PositionTable:
    """A table of position vectors with what is measured of it. `path` are the positions on the table's own
    first two principal components, `kept` the shares of the variance that each of these two keeps.
    """

    table: np.ndarray = field(repr=False)  # (position, d_model)
    alike: Alike = field(repr=False)
    path: np.ndarray = field(repr=False)  # (position, 2)
    kept: np.ndarray = field(repr=False)  # (2,)

    @property
    def neighbours(self) -> float:
        """Mean cosine of two positions next to each other."""
        return float(self.alike.by_distance[1])

    @property
    def first_to_median(self) -> float:
        """The length of position 0's vector over the median length."""
        return float(self.alike.norms[0] / max(float(np.median(self.alike.norms)), 1e-12))

    @property
    def knows_near(self) -> bool:
        """Whether near positions are clearly more alike than far ones."""
        return self.alike.correlation > NEAR

    @property
    def kept_by_both(self) -> float:
        """The share of the variance that the path shows."""
        return float(self.kept.sum())


def measured(table: np.ndarray) -> PositionTable:
    """table (position, d_model), three positions at least."""
    path, kept = project(table, principal(table, 2).axes)
    return PositionTable(table, alike(table), path, kept)
