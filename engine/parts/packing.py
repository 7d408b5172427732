"""Texts of unequal length without their padding. Only in attention do tokens meet on a grid of (batch,
position): all other parts look at each token alone, and are given tokens alone, those of all texts side by
side. So padding costs next to nothing, where it would be computed with and thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from engine.parts.blocks import Block
from engine.parts.crossing import NOWHERE, DecoderBlock
from engine.parts.heads import HeadMixer
from engine.probe import Probe, identity


class _Chosen(torch.autograd.Function):
    """Rows (n, width) at `there` (m,), each at most once; 0 where `there` is n. `back` (n,) is its inverse:
    to which of the m rows one goes, m where to none. So gradients are chosen, too, where PyTorch, which knows
    of no inverse, adds them one by one: that takes two to four times as long.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, rows: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(there, back)
        return _chosen(rows, there, len(back))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        there, back = ctx.saved_tensors
        return _chosen(grads[0], back, len(there)), None, None


def _chosen(rows: Tensor, there: Tensor, count: int) -> Tensor:
    """Rows (count, width) at `there` (m,); 0 where that is `count`."""
    if len(there) > count:  # more places than rows: some are empty
        rows = torch.cat((rows, rows.new_zeros(1, rows.shape[1])))
    return rows.index_select(0, there)


class Packing:
    """Which places of a batch of texts hold tokens: `real` (batch, position) is true there."""

    def __init__(self, real: Tensor) -> None:
        self.shape = real.shape
        self.places = real.flatten().nonzero().flatten()  # (token,), counted through all texts
        self.order = real.new_full((real.numel(),), self.tokens, dtype=torch.long)  # place -> token
        self.order[self.places] = torch.arange(self.tokens, device=real.device)

    @property
    def tokens(self) -> int:
        """How many there are, in all texts together."""
        return len(self.places)

    def packed(self, x: Tensor) -> Tensor:
        """(batch, position, ...) -> (1, token, ...): the tokens of all texts, side by side."""
        rows = x.reshape(self.shape.numel(), -1)
        return _Chosen.apply(rows, self.places, self.order).view(1, self.tokens, *x.shape[2:])

    def padded(self, x: Tensor) -> Tensor:
        """The inverse: (1, token, head, d_head) -> (batch, position, head, d_head), 0 where no token is."""
        rows = x.reshape(self.tokens, -1)
        return _Chosen.apply(rows, self.order, self.places).view(*self.shape, *x.shape[2:])


class PackedMixer:
    """A mixer for packed texts, x (1, token, d_model) in and out: what asks is packed as `asking`, what
    answers as `asked`.

    It is the mixer's own forward, which finds the grid between `heads` and `merged` and rows elsewhere.
    """

    def __init__(self, mixer: HeadMixer, asking: Packing, asked: Packing) -> None:
        self.mixer, self.asking, self.asked = mixer, asking, asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self.mixer, name)

    def __call__(self, *given: Any, **named: Any) -> Tensor:
        return type(self.mixer).forward(self, *given, **named)  # type: ignore[arg-type]

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.mixer.heads(x, memory)
        return self.asking.padded(q), self.asked.padded(k), self.asked.padded(v)

    def merged(self, z: Tensor) -> Tensor:
        return self.asking.packed(self.mixer.merged(z))


@dataclass(frozen=True, eq=False)
class PackedParts:
    """A block's parts, for its own wiring to join."""

    norm1: Callable[[Tensor], Tensor]
    norm2: Callable[[Tensor], Tensor]
    mixer: Callable[..., Tensor | None]
    ffn: Callable[[Tensor, Probe], Tensor | None]


@dataclass(frozen=True, eq=False)
class PackedCrossParts(PackedParts):
    """The same of a block that reads a memory."""

    norm_cross: Callable[[Tensor], Tensor]


def packed_block(block: Block, texts: Packing) -> Callable[..., Tensor]:
    """A block for packed texts: x (1, token, d_model) in and out."""
    mixer = _packed(block.mixer, texts, texts)
    return partial(block.connect, PackedParts(block.norm1, block.norm2, mixer, block.ffn))


def packed_crossing(
    block: DecoderBlock, own: Packing, memory: Tensor, source: Packing, across: Tensor | None
) -> Callable[..., Tensor]:
    """A decoder's block for texts packed as `own`, which reads a memory (1, token, d_model) packed as
    `source`. `across` is added to the scores of the source.
    """
    mixer, cross = _packed(block.mixer, own, own), _packed(block.cross, own, source)
    parts = PackedCrossParts(block.norm1, block.norm2, mixer, block.ffn, block.norm_cross)

    def read(x: Tensor) -> Tensor | None:
        return cross(x, NOWHERE, across, identity, None, memory)

    return partial(block.connect, parts, read=read)


def _packed(
    mixer: Callable[..., Tensor | None], asking: Packing, asked: Packing
) -> Callable[..., Tensor | None]:
    return PackedMixer(mixer, asking, asked) if isinstance(mixer, HeadMixer) else mixer  # else none talk
