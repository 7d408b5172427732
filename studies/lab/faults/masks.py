"""Masks that let a query look where it should not, beside `engine.parts.attention.causal_mask`."""

from __future__ import annotations

import math
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from engine.config import ResolvedConfig
from engine.parts.attention import Attention
from studies.costs.cards import Formula
from studies.costs.cards.mixers import AttentionCard
from studies.costs.cards.table import CARDS
from studies.lab.faults.fault import fault, variant


@fault("no_mask", "mask")
def no_mask(length: int, like: Tensor, start: int = 0) -> None:
    """Masks nothing: every query sees every key, the one that it should predict among them."""
    return None


@fault("transposed_mask", "mask")
def transposed_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """Masks the wrong triangle: a query sees itself and the keys after it, and none before."""
    mask = like.new_full((length, start + length), -math.inf)
    return mask.tril(start - 1)


@fault("leaky_mask", "mask")
def leaky_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """Uses one row for two queries: every second query sees the key that it should predict."""
    mask = like.new_full((length, start + length), -math.inf)
    mask = mask.triu(1 + start)
    mask[:-1:2] = mask[1::2]  # the second's row, broadcast to both
    return mask


class MaskAfterSoftmaxCard(AttentionCard):
    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex = r"A_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}} \text{ where } j \le i, \text{ else } 0"
        words = "softmax over key, then 0 where the mask hides a key"
        return super().formulas(config) | {"pattern": (latex, words)}


@fault("mask_after_softmax", "mixers.attention", "masked", "weights")
class MaskAfterSoftmax(Attention):
    """Attention that takes the softmax over all keys and hides those that come later afterwards: a row no
    longer sums to 1, and what is missing tells of the keys that are hidden.
    """

    cacheable: ClassVar[bool] = False

    def masked(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        return scores

    def weights(self, masked: Tensor, mask: Tensor | None = None) -> Tensor:
        pattern = masked.softmax(dim=-1)
        return pattern if mask is None else pattern.masked_fill(mask < 0, 0)


CARDS[MaskAfterSoftmax] = MaskAfterSoftmaxCard


@variant("swapped_masks", "decoder_masks")  # of an encoder-decoder alone: no fault of the lab
def swapped_masks(causal: Tensor | None, padding: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Gives each attention of a decoder the mask that is meant for the other, beside
    `engine.parts.attention.decoder_masks`: in training it reads the token that it should write, and of the
    source it sees no further than it has written.

    Where sources and targets are equally long, nothing would say so. Elsewhere each mask is cut, or grown by
    places that may be seen, so that it fits.
    """
    if causal is None:
        return padding, None
    own, source = causal.shape[-1], padding.shape[-1]
    return F.pad(padding, (0, own - source)), F.pad(causal, (0, source - own))
