"""IsoFLOP curves: the loss of models of several sizes for the same work, and where the best of them lies.

Approach 2 of Hoffmann et al. 2022 (section 3.2): a parabola in log N for each budget, its minimum N_opt, and
a power law N_opt ~ C^a through the minima of all budgets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.errors import GlassformerError


@dataclass(frozen=True, eq=False)
class Valley:
    """A budget's parabola in x = ln N, by its coefficients; `parameters` and `loss` at its minimum."""

    parameters: float
    loss: float
    curve: np.ndarray = field(repr=False)

    def at(self, parameters: np.ndarray) -> np.ndarray:
        """Returns the parabola's loss for each N (any shape)."""
        return np.polyval(self.curve, np.log(parameters))


@dataclass(frozen=True)
class PowerLaw:
    """N_opt = factor * C^exponent."""

    factor: float
    exponent: float

    def at(self, flops: float) -> float:
        return float(self.factor * flops**self.exponent)


def valley(parameters: np.ndarray, losses: np.ndarray) -> Valley:
    """Fits a parabola in ln N to `losses` (run,). Raises GlassformerError without a valley."""
    if len(np.unique(parameters)) < 3:
        raise GlassformerError("a parabola needs at least 3 sizes")
    curve = np.polyfit(np.log(parameters), losses, 2)
    if curve[0] <= 0:
        raise GlassformerError("the losses have no valley: the parabola through them does not curve upwards")
    lowest = -curve[1] / (2 * curve[0])
    return Valley(float(np.exp(lowest)), float(np.polyval(curve, lowest)), curve)


def power_law(flops: np.ndarray, best: np.ndarray) -> PowerLaw:
    """Fits N_opt = k C^a to `best` (budget,) by least squares in logarithms of two `flops` or more.

    >>> law = power_law(np.array([1e9, 1e11]), np.array([1e3, 1e4]))
    >>> round(law.exponent, 6), round(law.at(1e10))
    (0.5, 3162)
    """
    exponent, constant = np.polyfit(np.log(flops), np.log(best), 1)
    return PowerLaw(float(np.exp(constant)), float(exponent))
