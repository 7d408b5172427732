"""Faults in how parts hang together: a block, the loop over the blocks, the output, positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from torch import Tensor

from engine.config import ResolvedConfig
from engine.parts.blocks import PreNormBlock, add
from engine.parts.cache import KVCache, LayerCache
from engine.parts.formula import Formula
from engine.parts.output import LinearOutput
from engine.parts.positions import Added, PositionHooks, Sinusoidal, sinusoidal_table
from engine.parts.protocols import Sublayers
from engine.probe import Probe, scoped


class KeysNotNormed(PreNormBlock):
    """The norm is put before the queries alone; keys and values are read from the stream as it is."""

    @staticmethod
    def connect(
        parts: Sublayers,
        x: Tensor,
        hooks: PositionHooks,
        mask: Tensor | None,
        probe: Probe,
        cache: LayerCache | None,
    ) -> Tensor:
        x = probe("resid_pre", x)
        normed = probe("norm1", parts.norm1(x))
        x = probe("resid_mid", add(x, parts.mixer(normed, hooks, mask, probe, cache, x)))
        return probe("resid_post", add(x, parts.ffn(probe("norm2", parts.norm2(x)), probe)))


def first_block(
    blocks: Sequence[Callable[..., Tensor]],
    norm: Callable[[Tensor], Tensor],
    x: Tensor,
    hooks: PositionHooks,
    mask: Tensor | None,
    probe: Probe,
    cache: KVCache | None,
) -> Tensor:
    """The return stands inside the loop: only the first block ever runs."""
    for index, block in enumerate(blocks):
        kept = None if cache is None else cache.layer(index)
        x = block(x, hooks, mask, scoped(probe, f"blocks.{index}."), kept)
        return x
    return x


def norm_in_the_loop(
    blocks: Sequence[Callable[..., Tensor]],
    norm: Callable[[Tensor], Tensor],
    x: Tensor,
    hooks: PositionHooks,
    mask: Tensor | None,
    probe: Probe,
    cache: KVCache | None,
) -> Tensor:
    """The final norm stands inside the loop: the stream is normed after every block."""
    for index, block in enumerate(blocks):
        kept = None if cache is None else cache.layer(index)
        x = block(x, hooks, mask, scoped(probe, f"blocks.{index}."), kept)
        x = norm(x)
    return x


class ReshapedTie(LinearOutput):
    """The embedding is given the shape of its transpose by a reshape: the numbers stay where they lie, so
    that the column of a token is made of other tokens' rows.
    """

    linear: ClassVar[bool] = False  # with W_U itself, that is

    def forward(self, x: Tensor, matrix: Tensor, probe: Probe) -> Tensor:
        return probe("logits", x @ matrix.reshape(matrix.shape[1], -1))

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {"logits": (r"\mathrm{logits} = x\,\mathrm{reshape}(E)", "x · E, reshaped as it lies")}


class TwiceAdded(Sinusoidal):
    """The waves are added where the tokens are embedded, and once more before the first block."""

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        table = sinusoidal_table(length, self.d_model, 10_000.0, start, like.device)
        return Added((table + table).to(like.dtype))

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex, said = super().formulas(config)["pos_embed"]
        return {"pos_embed": (rf"2\,({latex})", f"{said}, twice")}
