"""Numbers in few bits: rounded to the nearest of some levels, with a scale for each block of them.

With 32 numbers to a block these are the kinds of ggml (llama.cpp): symmetric in 8 bits its Q8_0, with an
offset in 4 bits its Q4_1. https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.errors import ConfigError

BLOCK = 32  # numbers that share a scale, as in ggml
PART = 16  # bits of a scale or a minimum: both are kept as float16
FULL = 32  # bits of a number that is not rounded
BITS = (8, 4, 3, 2)


@dataclass(frozen=True)
class Rounding:
    """A way to write numbers in `bits` each. `block` numbers of a row share a scale; 0: the whole matrix
    shares one.

    Without `offset` a number is d * q, with q from -(2^(bits - 1) - 1) to as much above zero. With it, it is
    d * q + m, with q from 0 to 2^bits - 1.
    """

    bits: int
    block: int = BLOCK
    offset: bool = False

    def validate(self) -> Rounding:
        """Returns itself; raises ConfigError for bits or a block that cannot be."""
        if not 2 <= self.bits <= 8:
            raise ConfigError("bits", self.bits, "must be between 2 and 8")
        if self.block < 0:
            raise ConfigError("block", self.block, "must be at least 1, or 0 for the whole matrix")
        return self

    @property
    def top(self) -> int:
        """The largest q."""
        return 2**self.bits - 1 if self.offset else 2 ** (self.bits - 1) - 1

    @property
    def levels(self) -> int:
        """How many values q can have. A symmetric way does not use one of the 2^bits patterns.

        >>> Rounding(2).levels, Rounding(2, offset=True).levels
        (3, 4)
        """
        return self.top + 1 if self.offset else 2 * self.top + 1

    def stored_bits(self, numbers: int) -> float:
        """Bits for each of so many numbers, their share of the scales (and minima) included.

        >>> Rounding(4, offset=True).stored_bits(32), Rounding(8).stored_bits(64)
        (5.0, 8.5)
        """
        scales = math.ceil(numbers / self.block) if self.block else 1
        return self.bits + scales * PART * (1 + self.offset) / max(numbers, 1)


@dataclass(frozen=True, eq=False)
class Rounded:
    """A matrix (row, column) in few bits. `q` are whole numbers (row, block, number); `scale` d and
    `minimum` m are (row, block, 1), or (1, 1, 1) for the whole matrix; m is zero without an offset.
    """

    way: Rounding
    columns: int
    q: Tensor = field(repr=False)
    scale: Tensor = field(repr=False)
    minimum: Tensor = field(repr=False)

    @property
    def values(self) -> Tensor:
        """d * q + m, (row, column) float32."""
        return (self.q * self.scale).add_(self.minimum).flatten(1)[:, : self.columns]


def rounded(matrix: Tensor, way: Rounding) -> Rounded:
    """A matrix (row, column), each number rounded to the nearest level of its block, ties away from zero.

    As in ggml the numbers are rounded with the exact scale, and it is the scale's float16 that is kept. The
    last block of a row is shorter where the row is no multiple of it. Raises ConfigError.
    """
    way.validate()
    x = matrix.float()
    columns = x.shape[1]
    if way.block:
        more = -columns % way.block  # filled up with its last number, which changes no scale
        x = F.pad(x[None], (0, more), mode="replicate")[0] if more else x
        x = x.unflatten(1, (-1, way.block))  # (row, block, number)
        axes: tuple[int, ...] = (2,)
    else:
        x, axes = x[:, None], (0, 1, 2)
    least, most = x.amin(axes, keepdim=True), x.amax(axes, keepdim=True)
    if way.offset:
        d, m = (most - least) / way.top, least
        q = (x - m).mul_(inverse(d)).add_(0.5).floor_()
    else:
        d, m = torch.maximum(most, -least) / way.top, torch.zeros_like(least)
        q = x * inverse(d)
        q.add_(q.sign(), alpha=0.5).trunc_()
    return Rounded(way, columns, q, d.half().float(), m.half().float())


def inverse(d: Tensor) -> Tensor:
    """1 / d, and 0 where d is 0: a block of equal numbers has no step."""
    return torch.where(d == 0, 0.0, 1 / d)


@dataclass(frozen=True, eq=False)
class Taken:
    """What rounding took from a matrix. `relative` is ||w - w'|| / ||w||, `largest` the largest |w - w'|,
    `zeros` the share of the numbers that are zero now; `bits` are those of a number with its share of the
    scales.
    """

    relative: float
    largest: float
    zeros: float
    bits: float


@dataclass(frozen=True, eq=False)
class Histogram:
    """Shares of the numbers in the bins between `edges` (bin + 1,), before and after: (bin,) each."""

    edges: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def middles(self) -> np.ndarray:
        return (self.edges[1:] + self.edges[:-1]) / 2


def taken(matrix: Tensor, found: Rounded | None) -> Taken:
    """Of a matrix and what became of it; None for a matrix that stayed as it is."""
    x = matrix.float()
    values = x if found is None else found.values
    apart = values - x
    size = float(x.norm())
    return Taken(
        relative=float(apart.norm()) / size if size else 0.0,
        largest=float(apart.abs().max()),
        zeros=float((values == 0).float().mean()),
        bits=FULL if found is None else found.way.stored_bits(x.numel()),
    )


def histogram(matrix: Tensor, found: Rounded | None, bins: int = 121) -> Histogram:
    """How the numbers lie, in bins around zero that hold all but the outermost thousandth."""
    x = matrix.float().flatten().cpu().numpy()
    after = x if found is None else found.values.flatten().cpu().numpy()
    reach = float(np.quantile(np.abs(x[np.isfinite(x)]), 0.999)) if np.isfinite(x).any() else 1.0
    edges = np.linspace(-1, 1, bins + 1) * (reach or 1.0)
    shares = [np.histogram(v, edges)[0] / v.size for v in (x, after)]
    return Histogram(edges, *shares)
