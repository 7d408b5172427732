"""One block of 32 numbers as a GGUF file keeps it: a scale, perhaps a minimum, and 32 small whole numbers.

The kinds whose blocks are that plain: Q4_0, Q4_1 and Q8_0 of
https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from engine.errors import PretrainedError
from studies.weights.pretrained.gguf import KINDS, Gguf
from studies.weights.pretrained.load import Opened
from studies.weights.pretrained.weights import Piece

SIZE = 32  # numbers of a block


SPANS = {"Q4_0": (-8, 7), "Q4_1": (0, 15), "Q8_0": (-127, 127)}  # of q


@dataclass(frozen=True, eq=False)
class QuantisedBlock:
    """Numbers d * q + m. `original` are those before rounding, None for a block out of a file; `name` is the
    file's for the tensor and `row` a row of it, `raw` the block's bytes there.
    """

    kind: str
    scale: float  # d, stored as float16
    minimum: float  # m, stored as float16; 0 where the kind has none
    q: np.ndarray = field(repr=False)  # (number,) int
    original: np.ndarray | None = field(default=None, repr=False)
    name: str | None = None
    row: int = 0
    raw: bytes = field(default=b"", repr=False)

    @property
    def numbers(self) -> np.ndarray:
        """(number,) float32"""
        made: np.ndarray = self.q.astype(np.float32) * np.float32(self.scale) + np.float32(self.minimum)
        return made.astype(np.float32)

    @property
    def low(self) -> int:
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
        """Bits per number, scale and minimum included; those of Q4_1 for a block that was made here."""
        return (8 * len(self.raw) or 4 * len(self.q) + 32) / len(self.q)


def _half(raw: np.ndarray) -> float:
    return float(raw.view("<f2")[0])


def _nibbles(raw: np.ndarray) -> np.ndarray:
    """16 bytes -> 32 numbers: the lower halves of all bytes come first."""
    return np.concatenate([raw & 15, raw >> 4]).astype(np.int32)


UNPACK: dict[str, Callable[[np.ndarray], tuple[float, float, np.ndarray]]] = {
    "Q4_0": lambda raw: (_half(raw[:2]), 0.0, _nibbles(raw[2:]) - 8),
    "Q4_1": lambda raw: (_half(raw[:2]), _half(raw[2:4]), _nibbles(raw[4:])),
    "Q8_0": lambda raw: (_half(raw[:2]), 0.0, raw[2:].view(np.int8).astype(np.int32)),
}


def kinds(opened: Opened, name: str) -> tuple[str, ...]:
    """Returns the kinds that a tensor of ours is stored in, one for each of the file's; none if no GGUF."""
    file = opened.source
    if not isinstance(file, Gguf):
        return ()
    return tuple(file.stored[each].kind for each in _piece(opened, name).names)


def block_at(opened: Opened, name: str, row: int, index: int) -> QuantisedBlock | None:
    """Returns block `index` of a row of our matrix `name`, found in the file wherever that was reordered;
    None where its kind is not plain. Raises PretrainedError where there is no such matrix, row or block.
    """
    file = opened.source
    if not isinstance(file, Gguf):
        return None
    below = row
    for theirs, change in _piece(opened, name).parts:
        shape = file.shapes[theirs]
        if len(shape) != 2:
            return None
        if below < shape[0]:
            order = np.arange(shape[0])[:, None]
            moved = order if change is None else change(order)
            if moved.shape != order.shape:  # transposed: its rows lie across the blocks
                return None
            return _block(file, theirs, int(moved[below, 0]), index)
        below -= shape[0]
    raise PretrainedError(f"{name} has no row {row}")


def _piece(opened: Opened, name: str) -> Piece:
    pieces = opened.family.pieces(opened.config)
    if name not in pieces:
        raise PretrainedError(f"there is no tensor {name} in this model")
    return pieces[name]


def _block(file: Gguf, name: str, row: int, index: int) -> QuantisedBlock | None:
    stored = file.stored[name]
    if stored.kind not in UNPACK:
        return None
    blocks = stored.shape[1] // SIZE
    if not 0 <= index < blocks:
        raise PretrainedError(f"a row of {name} has {blocks} blocks; there is no block {index}")
    size = next(size for kind, _, size in KINDS.values() if kind == stored.kind)
    begin = (row * blocks + index) * size
    raw = np.asarray(file.raw(name)[begin : begin + size])
    scale, minimum, q = UNPACK[stored.kind](raw)
    return QuantisedBlock(stored.kind, scale, minimum, q, name=name, row=row, raw=raw.tobytes())
