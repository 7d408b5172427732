"""Sinusoidal positions: wavelengths, the likeness of two positions, and the rotation from one to another.

Vaswani et al. 2017, section 3.5: PE(p, 2i) = sin(p theta_i), PE(p, 2i+1) = cos(p theta_i), theta_i =
base^(-2i/d). The pair (sin, cos) is the tip of a clock's hand of length 1, pointing up at position 0 and
turning clockwise by theta_i radians a position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch

from engine.errors import ConfigError
from engine.parts.positions import sinusoidal_table

BASE = 10_000.0


@dataclass(frozen=True, eq=False)
class Similarity:
    """The likeness of the vectors of two positions. `dots` (position, position) are PE(p) . PE(q), float32;
    every vector has the squared length d/2. `by_distance` (distance,) is the theory, sum_i cos(k theta_i).
    `deviation` is the largest difference from theory in float32; `deviation64` the same in float64.
    """

    dots: np.ndarray = field(repr=False)
    by_distance: np.ndarray = field(repr=False)
    deviation: float
    deviation64: float

    @property
    def cosines(self) -> np.ndarray:
        """The cosines (position, position), float32."""
        return self.dots / np.float32(self.by_distance[0])

    @property
    def cosine_by_distance(self) -> np.ndarray:
        """Expected cosine of two position vectors by distance (distance,): 1 at 0."""
        return self.by_distance / self.by_distance[0]

    @property
    def vector_length(self) -> float:
        """The length of every position's vector: sqrt(d/2)."""
        return math.sqrt(self.by_distance[0])

    @property
    def most_alike(self) -> int:
        """The distance, 1 or more, at which two positions are most alike; above 1, likeness comes back."""
        return int(np.argmax(self.by_distance[1:])) + 1


@dataclass(frozen=True, eq=False)
class Waves:
    """The pairs of a table of `length` positions: `theta` (pair,), and `wavelength`, `ratio` apart."""

    theta: np.ndarray = field(repr=False)
    wavelength: np.ndarray = field(repr=False)
    ratio: float
    length: int

    @property
    def longer(self) -> int:
        """The number of pairs that do not go round once within the table."""
        return int((self.wavelength > self.length).sum())


@dataclass(frozen=True, eq=False)
class TurnedPair:
    """One pair at position p and at p + k. `start` and `end` are (sin, cos) there; `block` (2, 2) turns by
    `angle` = k theta radians, and `carried` is block @ start: `end`, to rounding.
    """

    theta: float
    angle: float
    block: np.ndarray
    start: np.ndarray
    carried: np.ndarray
    end: np.ndarray
    end_angle: float  # (p + k) theta


@dataclass(frozen=True)
class Residual:
    """The largest |R(k) PE(p) - PE(p + k)| over positions and dimensions, in float32 and in float64."""

    float32: float
    float64: float


def frequencies(d_model: int, base: float = BASE) -> np.ndarray:
    """Returns theta_i in radians a position, (d_model/2,), float64. Raises ConfigError for other values.

    >>> frequencies(8).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    if d_model < 2 or d_model % 2:
        raise ConfigError("d_model", d_model, "must be even and at least 2: sines and cosines come in pairs")
    if not (1.0 <= base <= 1e12):
        raise ConfigError("base", base, "must be between 1 and 1e12")
    return 1.0 / base ** (np.arange(0, d_model, 2) / d_model)


def wavelengths(d_model: int, base: float = BASE) -> np.ndarray:
    """Returns the positions of a full turn, (d_model/2,): from 2 pi to 2 pi base^((d-2)/d)."""
    return 2 * np.pi / frequencies(d_model, base)


def waves(length: int, d_model: int, base: float = BASE) -> Waves:
    """Returns the waves of a table of `length` positions. Raises ConfigError as `frequencies` does.

    >>> r = waves(64, 64)
    >>> r.longer, round(r.ratio, 3)
    (23, 1.334)
    """
    return Waves(frequencies(d_model, base), wavelengths(d_model, base), float(base ** (2 / d_model)), length)


def table64(length: int, d_model: int, base: float = BASE, start: int = 0) -> np.ndarray:
    """Returns `sinusoidal_table` in float64: (position, d_model)."""
    angles = np.outer(np.arange(start, start + length), frequencies(d_model, base))
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(length, d_model)


def similarity(length: int, d_model: int, base: float = BASE) -> Similarity:
    """Compares every two positions: PE(p) . PE(q) = sum_i cos((p - q) theta_i), a function of distance."""
    table = sinusoidal_table(length, d_model, base).numpy()
    exact = table64(length, d_model, base)
    theory = np.cos(np.outer(np.arange(length), frequencies(d_model, base))).sum(-1)
    apart = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    dots = table @ table.T
    return Similarity(
        dots, theory, *(float(np.abs(x - theory[apart]).max()) for x in (dots, exact @ exact.T))
    )


def turn(angle: float) -> np.ndarray:
    """Returns the matrix (2, 2) that turns (sin a, cos a) into (sin(a + angle), cos(a + angle)).

    >>> turn(0.2).round(3).tolist()
    [[0.98, 0.199], [-0.199, 0.98]]
    """
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def turned_pair(p: int, k: int, pair: int, d_model: int, base: float = BASE) -> TurnedPair:
    """Returns pair number `pair` at position p, and turned by k positions; k may be negative."""
    theta = float(frequencies(d_model, base)[pair])
    start, end = (np.array([math.sin(x * theta), math.cos(x * theta)]) for x in (p, p + k))
    block = turn(k * theta)
    return TurnedPair(theta, k * theta, block, start, block @ start, end, (p + k) * theta)


def rotation_matrix(k: int, d_model: int, base: float = BASE) -> np.ndarray:
    """Returns R(k), (d_model, d_model), with blocks `turn(k theta_i)`: PE(p + k) = R(k) PE(p)."""
    matrix = np.zeros((d_model, d_model))
    for i, theta in enumerate(frequencies(d_model, base)):
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = turn(k * theta)
    return matrix


def rotation_residual(length: int, k: int, d_model: int, base: float = BASE) -> Residual:
    """Measures how well R(k) carries each of `length` positions to the one k further on (or back)."""
    matrix = rotation_matrix(k, d_model, base)
    single = sinusoidal_table(length, d_model, base) @ torch.from_numpy(matrix).float().T - sinusoidal_table(
        length, d_model, base, start=k
    )
    double = table64(length, d_model, base) @ matrix.T - table64(length, d_model, base, start=k)
    return Residual(float(single.abs().max()), float(np.abs(double).max()))
