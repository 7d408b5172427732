"""The loop over the blocks: a plain stack of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from engine.parts.cache import KVCache
from engine.parts.positions import PositionHooks
from engine.probe import Probe, scoped


def each_block(
    blocks: Sequence[Callable[..., Tensor]],
    norm: Callable[[Tensor], Tensor],
    x: Tensor,
    hooks: PositionHooks,
    mask: Tensor | None,
    probe: Probe,
    cache: KVCache | None,
) -> Tensor:
    """Every block in its turn, each on what the one before left: x (batch, query, d_model) in and out. The
    final norm comes after all of them.
    """
    for index, block in enumerate(blocks):
        kept = None if cache is None else cache.layer(index)
        x = block(x, hooks, mask, scoped(probe, f"blocks.{index}."), kept)
    return x
