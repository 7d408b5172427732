"""Masks, added to the scores before the softmax: causal, sliding window, padding."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.errors import ShapeError


def causal_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """Returns (query, key): 0 where key <= query, -inf above. Added to the scores *before* the softmax.
    Queries begin at position `start`.
    """
    mask = like.new_full((length, start + length), -math.inf)
    return mask.triu(1 + start)


def window_mask(length: int, like: Tensor, window: int, start: int = 0) -> Tensor:
    """Returns (query, key): 0 for the last `window` keys up to the query itself, -inf for those before
    (sliding window attention: Beltagy et al. 2020, Jiang et al. 2023). The causal mask hides the keys after
    it.
    """
    return torch.full((length, start + length), -math.inf, dtype=like.dtype, device=like.device).tril(
        start - window
    )


def padding_mask(tokens: Tensor, pad: int, like: Tensor) -> Tensor:
    """Returns (batch, 1, 1, source) for tokens (batch, source): 0 where a token is, -inf where only padding
    makes the rows equally long. The same for every head and every query. Raises ShapeError for a row of
    padding alone, since a softmax over nothing has no answer.
    """
    empty = tokens == pad  # (batch, source)
    if bool(empty.all(dim=1).any()):
        raise ShapeError("an empty source cannot be read: give each at least one token that is not padding")
    mask = torch.zeros(tokens.shape, dtype=like.dtype, device=like.device)
    return mask.masked_fill(empty.to(like.device), -math.inf)[:, None, None, :]


def check_causal(mask: Tensor | None, length: int, start: int = 0) -> None:
    """Raises ShapeError for what is no causal mask of `length` queries from `start` on."""
    wanted = (length, start + length)
    if mask is not None and tuple(mask.shape) != wanted:
        raise ShapeError(
            f"the causal mask must be of shape (query, key) = {wanted}, not {tuple(mask.shape)}: every text"
            " has the same one"
        )


def check_padding(mask: Tensor, batch: int, source: int) -> None:
    """Raises ShapeError for what is no padding mask of `batch` sources."""
    wanted = (batch, 1, 1, source)
    if tuple(mask.shape) != wanted:
        raise ShapeError(
            f"the padding mask must be of shape (batch, 1, 1, source) = {wanted}, not {tuple(mask.shape)}:"
            " every source has its own, for all queries; a mask (query, key) is the causal one"
        )


def decoder_masks(causal: Tensor | None, padding: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Returns the masks of a decoder's self-attention and cross-attention. The causal one (query, key) hides
    tokens not yet written, the padding one (batch, 1, 1, source) positions without a token.
    """
    return causal, padding
