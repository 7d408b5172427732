"""One token against a source that was read, beside engine.parts.single_row: the same arithmetic as the
cross-attention's own, with less around it. It serves exactly the classes named here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.parts import single_row
from engine.parts.attention import Attention
from engine.parts.cache import PairCache
from engine.parts.crossing import PostNormDecoderBlock, PreNormDecoderBlock
from engine.parts.row_products import product
from engine.parts.single_row import Products, RowParts, Vector, norm_of

KNOWN = (PreNormDecoderBlock, PostNormDecoderBlock)


@dataclass(frozen=True, eq=False)
class CrossRowParts(RowParts):
    """A decoder block's parts, for its own wiring to join: lighter ones, for a single row."""

    norm_cross: Vector
    read: Callable[[Tensor], Tensor]


def known(block: Any) -> bool:
    """Whether a decoder's block can be read a row at a time."""
    parts = (block.norm1, block.norm_cross, block.norm2, block.mixer, block.ffn)
    return type(block) in KNOWN and type(block.cross) is Attention and single_row.known(*parts)


def row_of(
    block: Any, cache: PairCache, index: int, products: Products
) -> tuple[Callable[..., Tensor], CrossRowParts]:
    """A known block's own wiring, and lighter parts for it, over a cache that knows its source."""
    _, own = single_row.row_of(block, cache.own, index, products)
    reading = Reading(block.cross, cache, index, products)
    parts = CrossRowParts(own.norm1, own.norm2, own.mixer, own.ffn, norm_of(block.norm_cross), reading)
    return type(block).connect, parts


class Reading:
    """One query against all keys of one source, none of them padding."""

    def __init__(self, mixer: Attention, cache: PairCache, index: int, products: Products) -> None:
        heads, kv_heads, self.d_head = mixer.n_heads, mixer.n_kv_heads, mixer.d_head
        rows, bias = heads * self.d_head, mixer.w_qkv.bias
        weight = mixer.w_qkv.weight.detach()[:rows]  # W_Q
        multiply = product(weight, None if bias is None else bias.detach()[:rows], products.arithmetic)
        self.row = weight.new_empty(1, rows)
        self.project = lambda x: multiply(x, self.row)
        self.q = self.row.view(kv_heads, heads // kv_heads, self.d_head)  # queries of one group side by side
        keys, self.values = cache.across.held[index, :, 0]  # each (kv_head, source, d_head)
        self.keys = keys.transpose(1, 2)
        self.eps = mixer.eps if mixer.qk_norm else None
        self.gain = mixer.q_gain
        self.scale = weight.new_tensor(mixer.scale)
        w_o = mixer.w_o
        self.output = None if w_o is None else single_row.linear(w_o.weight, w_o.bias, products)

    def __call__(self, x: Tensor) -> Tensor:
        self.project(x)
        if self.eps is not None:
            self.q.copy_(F.rms_norm(self.q, (self.d_head,), self.gain, self.eps))
        pattern = torch.bmm(self.q.mul_(self.scale), self.keys).softmax(-1)  # (kv_head, group, source)
        z = torch.bmm(pattern, self.values).view(1, -1)  # (1, head * d_head)
        return z if self.output is None else self.output(z)
