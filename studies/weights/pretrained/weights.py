"""Where each tensor of a model of ours lies in a file of others, and how its numbers are laid out there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

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


@dataclass(frozen=True)
class HalfOfHeads:
    """Takes the first or the second half of each head's rows, (head * 2 d_head, ...)."""

    n_heads: int
    index: int
    of: ClassVar[int] = 2  # what it takes is so small a part

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(self.n_heads, self.of, -1, *x.shape[1:])[:, self.index].reshape(-1, *x.shape[1:])


def experts_stacked(x: np.ndarray) -> np.ndarray:
    """Stacks gpt-oss's matrices, (expert, in, out) to (expert * out, in); biases (expert, out) to a row."""
    return x.reshape(-1) if x.ndim == 2 else x.swapaxes(1, 2).reshape(-1, x.shape[1])


def gates_first(x: np.ndarray) -> np.ndarray:
    """The same for gates and values, which lie in turn there; here all gates of an expert stand first."""
    return experts_stacked(np.concatenate((x[..., 0::2], x[..., 1::2]), -1))


def turned_apart(d_rotated: int) -> Change:
    """Reorders the last `d_rotated` rows: DeepSeek-V3 turns neighbours together, here they are half of those
    rows apart.
    """

    def change(x: np.ndarray) -> np.ndarray:
        rest, turned = x[:-d_rotated], x[-d_rotated:]
        return np.concatenate((rest, turned[0::2], turned[1::2]))

    return change


def turned_first(n_heads: int, d_rotated: int) -> Change:
    """Reorders the rows of DeepSeek-V3's queries, (head * (d_head + d_rotated), ...): the same within each
    head, and the turned ones first.
    """
    apart = turned_apart(d_rotated)

    def change(x: np.ndarray) -> np.ndarray:
        heads = [np.roll(apart(rows), d_rotated, axis=0) for rows in np.split(x, n_heads)]
        return np.concatenate(heads)

    return change
