"""Where each tensor of a model of ours lies in a file of others, and how its numbers are laid out there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Change = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Piece:
    """The origin of one of our tensors: `parts` (name there, change), row block under row block."""

    parts: tuple[tuple[str, Change | None], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.parts)

    def __add__(self, below: Piece) -> Piece:
        return Piece(self.parts + below.parts)


def piece(*names: str, change: Change | None = None) -> Piece:
    """Returns tensors that are all changed alike."""
    return Piece(tuple((name, change) for name in names))


def transposed(x: np.ndarray) -> np.ndarray:
    """Transposes GPT-2's matrices, which are (in, out), to (out, in); a bias stays as it is."""
    return x.T


def offset_gain(x: np.ndarray) -> np.ndarray:
    """Adds 1 to a gain: Gemma stores its gains minus 1."""
    return x + 1


def half_split(n_heads: int) -> Change:
    """Reorders the rows of a query or key matrix, (head * d_head, d_model), out of the order in which GGUF's
    llama keeps them.

    There the two rows that RoPE turns together are neighbours; here, as at Hugging Face, they are half a head
    apart.
    """

    def change(x: np.ndarray) -> np.ndarray:
        return x.reshape(n_heads, -1, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)

    return change


def by_head(n_heads: int) -> Change:
    """Unpacks GPT-NeoX's fused matrix: (head, 3, d_head, ...) becomes (3, head, d_head, ...)."""

    def change(x: np.ndarray) -> np.ndarray:
        return x.reshape(n_heads, 3, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)

    return change
