"""What a query may not look at: added to the scores before the softmax."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def causal_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """(query, key): 0 where key <= query, -inf above. Added to the scores *before* the softmax. Queries begin
    at position `start`.
    """
    mask = like.new_full((length, start + length), -math.inf)
    return mask.triu(1 + start)


def window_mask(length: int, like: Tensor, window: int, start: int = 0) -> Tensor:
    """(query, key): 0 for the last `window` keys up to the query itself, -inf for those before (sliding
    window attention: Beltagy et al. 2020, Jiang et al. 2023). What comes after is the causal mask's.
    """
    return torch.full((length, start + length), -math.inf, dtype=like.dtype, device=like.device).tril(
        start - window
    )
