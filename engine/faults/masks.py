"""Masks that let a query look where it should not. Each stands beside the healthy one,
`engine.parts.masks.causal_mask`, line by line.
"""

from __future__ import annotations

import math

from torch import Tensor


def no_mask(length: int, like: Tensor, start: int = 0) -> None:
    """None at all: every query sees every key, the one that it should guess among them."""
    return None


def transposed_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """The wrong triangle: a query sees itself and what comes after it, and nothing before."""
    mask = like.new_full((length, start + length), -math.inf)
    return mask.tril(start - 1)


def leaky_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """One row for two queries: every second query sees the key that it should guess."""
    mask = like.new_full((length, start + length), -math.inf)
    mask = mask.triu(1 + start)
    mask[:-1:2] = mask[1::2]  # the second's row, broadcast to both
    return mask
