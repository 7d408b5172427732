"""One block of up to 32 numbers in 4 bits, number by number: as a file has it, or as it would be stored."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.errors import ShapeError
from engine.measure.circuits.rounding import BLOCK, Rounding, rounded
from engine.weights.pretrained.blocks import block_at
from engine.weights.pretrained.load import Opened

Q4_1 = Rounding(4, BLOCK, offset=True)
Q8_0 = Rounding(8, BLOCK)
SPANS = {"Q4_0": (-8, 7), "Q4_1": (0, Q4_1.top), "Q8_0": (-Q8_0.top, Q8_0.top)}  # of q


@dataclass(frozen=True, eq=False)
class OneBlock:
    """Numbers d * q + m. `original` are those that were rounded, None for what came out of a file: nobody has
    them any more there. `name` is the file's for the tensor, None for a block that was made here.
    """

    kind: str
    scale: float
    minimum: float
    q: np.ndarray = field(repr=False)  # (number,)
    numbers: np.ndarray = field(repr=False)  # (number,) float32
    original: np.ndarray | None = field(default=None, repr=False)
    name: str | None = None
    row: int = 0
    raw: bytes = field(default=b"", repr=False)

    @property
    def low(self) -> int:
        """The smallest q of its kind."""
        return SPANS[self.kind][0]

    @property
    def high(self) -> int:
        return SPANS[self.kind][1]

    @property
    def levels(self) -> np.ndarray:
        """Every value that a number of this block can have, lowest first."""
        return (np.arange(self.low, self.high + 1) * self.scale + self.minimum).astype(np.float32)

    @property
    def largest_error(self) -> float | None:
        """The largest |original - number|; None where the original is not known."""
        return None if self.original is None else float(np.abs(self.original - self.numbers).max())

    @property
    def bits(self) -> float:
        """Bits for each number, scale and minimum included."""
        if self.raw:
            return 8 * len(self.raw) / len(self.q)
        return Q4_1.stored_bits(len(self.q))


def stored(opened: Opened, name: str, row: int, index: int) -> OneBlock | None:
    """Block `index` in row `row` of our matrix `name`, out of its GGUF file; None where it comes from none,
    or is not in plain blocks there. Raises PretrainedError.
    """
    found = block_at(opened, name, row, index)
    if found is None:
        return None
    return OneBlock(
        found.kind,
        found.scale,
        found.minimum,
        found.q,
        found.numbers,
        name=found.name,
        row=found.row,
        raw=found.raw,
    )


@torch.inference_mode()
def made(matrix: Tensor, row: int, index: int) -> OneBlock:
    """The same block of a matrix of ours as Q4_1 would keep it. Raises ShapeError where there is no such
    block.
    """
    if not 0 <= row < matrix.shape[0] or not 0 <= index * BLOCK < matrix.shape[1]:
        raise ShapeError(f"a matrix of {tuple(matrix.shape)} has no block {index} in a row {row}")
    own = matrix[row : row + 1, index * BLOCK : (index + 1) * BLOCK].float()
    found = rounded(own, Q4_1)
    q = found.q.flatten()[: own.shape[1]].int().cpu().numpy()
    return OneBlock(
        "Q4_1",
        float(found.scale),
        float(found.minimum),
        q,
        found.values[0].cpu().numpy(),
        own[0].cpu().numpy(),
    )
