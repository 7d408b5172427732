"""The context that a forward pass hands to its blocks, and the loop over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from engine.parts.cache import KVCache
from engine.parts.positions import PositionHooks
from engine.probe import Probe, crossing, identity, scoped

NO_POSITIONS = PositionHooks()


class PassContext(NamedTuple):
    """The inputs of a block beside the stream x (batch, query, d_model). Immutable, and made quickly.

    hooks   the position scheme, ready for the positions of the queries
    mask    added to the scores: causal (query, key), padding (batch, 1, 1, key) or both; None for nothing
    probe   is shown every activation, and may replace it
    cache   keys and values of the tokens before x, for all layers
    layer   the index of the block
    memory  vectors (batch, key, d_model) that keys and values are made of; None: x itself
    cross   the context of a decoder's cross-attention
    """

    hooks: PositionHooks = NO_POSITIONS
    mask: Tensor | None = None
    probe: Probe = identity
    cache: KVCache | None = None
    layer: int = 0
    memory: Tensor | None = None
    cross: PassContext | None = None

    def block(self, index: int) -> PassContext:
        """Returns the context of one block: its activations are called `blocks.{index}.q` and so on."""
        probe = scoped(self.probe, f"blocks.{index}.")
        cross = self.cross and self.cross._replace(probe=crossing(probe), layer=index)
        return PassContext(self.hooks, self.mask, probe, self.cache, index, self.memory, cross)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Returns keys and values (batch, kv_head, key, d_head) with those of the tokens before, if any."""
        return (k, v) if self.cache is None else self.cache.extend(self.layer, k, v)


def each_block(
    blocks: Sequence[Callable[[Tensor, PassContext], Tensor]],
    norm: Callable[[Tensor], Tensor],
    x: Tensor,
    context: PassContext,
) -> Tensor:
    """Runs every block on what the one before left. The final `norm` comes after all of them, not here."""
    for index, block in enumerate(blocks):
        x = block(x, context.block(index))
    return x
