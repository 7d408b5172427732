"""Tables of position vectors, learned or sinusoidal: the likeness of two positions by their distance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.model import Transformer
from engine.parts.positions import Learned, sinusoidal_table
from studies.embeddings.table import correlation, cosines, principal, project


def learned_table(model: Transformer) -> np.ndarray | None:
    """Returns the trained table (context, d_model) float32; None where the model has none."""
    return (
        model.positions.weight.detach().float().cpu().numpy()
        if isinstance(model.positions, Learned)
        else None
    )


def sinusoidal(length: int, d_model: int) -> np.ndarray:
    """Returns sinusoidal vectors, (length, d_model) float32; an odd width lacks the last cosine."""
    return sinusoidal_table(length, d_model + d_model % 2)[:, :d_model].numpy()


@dataclass(frozen=True, eq=False)
class Alike:
    """The likeness of two positions: cosines of the vectors as they are."""

    cosines: np.ndarray = field(repr=False)  # (position, position)
    norms: np.ndarray = field(repr=False)  # (position,)
    # (distance,): mean cosine of two positions that far apart; entry 0 is 1
    by_distance: np.ndarray = field(repr=False)
    # (distance,): standard deviation of those cosines; 0 where only the distance counts
    spread: np.ndarray = field(repr=False)
    # between the cosine and -distance, over all pairs of different positions; NaN where nothing varies
    correlation: float


def alike(table: np.ndarray) -> Alike:
    """Compares the rows of a table (position, d_model), two at least."""
    result = cosines(table, centre=False)
    length = len(table)
    diagonals = [np.diagonal(result, k).astype(np.float64) for k in range(length)]
    first, second = np.triu_indices(length, 1)
    link = correlation(result[first, second], -(second - first).astype(np.float64))
    return Alike(
        result,
        np.linalg.norm(table, axis=1),
        np.array([d.mean() for d in diagonals]),
        np.array([d.std() for d in diagonals]),
        link,
    )


NEAR = 0.3  # correlation of the cosine with -distance above which a table has learned what "near" is


@dataclass(frozen=True, eq=False)
class PositionTable:
    """A table of position vectors; `path`: on two principal components of these `variance_shares`."""

    table: np.ndarray = field(repr=False)  # (position, d_model)
    alike: Alike = field(repr=False)
    path: np.ndarray = field(repr=False)  # (position, 2)
    variance_shares: np.ndarray = field(repr=False)  # (2,)

    @property
    def first_to_median(self) -> float:
        """The length of position 0's vector over the median length."""
        return float(self.alike.norms[0] / max(float(np.median(self.alike.norms)), 1e-12))

    @property
    def knows_near(self) -> bool:
        """True if near positions are clearly more alike than far ones."""
        return self.alike.correlation > NEAR

    @property
    def shown_variance(self) -> float:
        """The share of the variance that the path shows."""
        return float(self.variance_shares.sum())


def measured(table: np.ndarray) -> PositionTable:
    """Measures a table (position, d_model) of three positions at least."""
    path, kept = project(table, principal(table, 2).axes)
    return PositionTable(table, alike(table), path, kept)
