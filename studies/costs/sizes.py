"""Which sizes suit the hardware: how often 2 divides them, and what padding would cost."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import ResolvedConfig

TILE = 64  # numbers of 16 bits in the 128 bytes that an A100's tensor cores like to read at once


@dataclass(frozen=True)
class Fitting:
    """One size of a model, the largest power of two that divides it, and the next multiple of TILE."""

    field: str
    size: int
    factor: int
    padded: int

    @property
    def fits(self) -> bool:
        return self.size == self.padded


def fitting(c: ResolvedConfig) -> tuple[Fitting, ...]:
    """Returns the sizes that are sides of a model's matrices. A side that is no multiple of 64 numbers of 16
    bits leaves tiles partly empty (NVIDIA, Matrix Multiplication Background, 2023, sections 2.2 and 3.1).
    """
    sizes = {"vocab_size": c.vocab_size, "d_model": c.d_model, "d_head": c.d_head, "d_ff": c.d_ff}
    return tuple(
        Fitting(field, size, size & -size, -(-size // TILE) * TILE) for field, size in sizes.items() if size
    )


def padding(c: ResolvedConfig) -> int:
    """Returns the parameters that filling the embedding up to a multiple of TILE would add."""
    return (-c.vocab_size % TILE) * c.d_model
