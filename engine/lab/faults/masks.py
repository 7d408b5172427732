"""Masks that let a query look where it should not. Each stands beside the healthy one of engine.parts.masks,
line by line.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
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


def swapped_masks(causal: Tensor | None, padding: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Each attention of a decoder gets the mask that is meant for the other, beside
    `engine.parts.masks.decoder_masks`: while it learns it reads the token that it should say, and of the
    source it sees no further than it has written.

    Where sources and targets are equally long, nothing would say so. Elsewhere each mask is cut, or grown by
    places that may be seen, so that it fits.
    """
    if causal is None:
        return padding, None
    own, source = causal.shape[-1], padding.shape[-1]
    return F.pad(padding, (0, own - source)), F.pad(causal, (0, source - own))
