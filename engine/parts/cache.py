"""The KV cache: keys and values of the positions read so far."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.errors import ShapeError


class KVCache:
    """Keys and values of the positions read so far: under a causal mask they never change, so each is
    computed once.

    `length` positions are filled: where the next token stands. The model adds to it once all layers have
    stored theirs.
    """

    def __init__(self, config: ModelConfig, capacity: int, like: Tensor, batch: int = 1) -> None:
        c = config.resolved()
        tensors, heads, width = c.cache_shape
        shape = (c.n_layers, tensors, batch, heads, capacity, width)
        # (layer, key or value, batch, kv_head, capacity, d_head); of mla there is one tensor, of one head
        self.held = torch.empty(shape, dtype=like.dtype, device=like.device)
        self.length = 0

    @property
    def capacity(self) -> int:
        return self.held.shape[4]

    @classmethod
    def holding(cls, held: Tensor, length: int) -> KVCache:
        """Returns a cache of `held` (layer, 2, batch, kv_head, capacity, d_head), `length` of it filled."""
        cache = cls.__new__(cls)
        cache.held, cache.length = held, length
        return cache

    def check_room(self, length: int) -> None:
        """Raises ShapeError unless `length` positions fit, those that are filled among them."""
        if length > self.capacity:
            raise ShapeError(
                f"a cache of {self.capacity} positions, {self.length} of them filled, cannot take"
                f" {length - self.length} more"
            )

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores the new k and v (batch, kv_head, key, d_head) of a layer; returns those of all positions so
        far. No gradient passes. `length` stays as it is.
        """
        held, start = self.held[layer], self.length
        stop = start + k.shape[2]
        if stop > start:
            for tensor, new in zip(held, (k, v)[: len(held)], strict=True):
                tensor[:, :, start:stop] = new.detach()
        return held[0, :, :, :stop], held[-1, :, :, :stop]

    def grow(self, capacity: int) -> None:
        """Makes room for `capacity` positions without changing those that are filled. Never shrinks."""
        if capacity > self.capacity:
            wider = self.held.new_empty((*self.held.shape[:4], capacity, self.held.shape[5]))
            wider[..., : self.length, :] = self.held[..., : self.length, :]
            self.held = wider

    def branch(self, rows: Sequence[int]) -> KVCache:
        """Returns a cache of other texts that begin alike: its row i is a copy of row rows[i]."""
        held = self.held.index_select(2, torch.tensor(rows, device=self.held.device))
        return KVCache.holding(held, self.length)


class PairCache:
    """The keys and values of a decoder with a memory: those of the target, which grow, and those of the
    source, which are computed once, at the first pass.
    """

    def __init__(self, config: ModelConfig, capacity: int, source: int, like: Tensor, batch: int = 1) -> None:
        self.target = KVCache(config, capacity, like, batch)
        self.source = KVCache(config, source, like, batch)

    @property
    def length(self) -> int:
        """Returns the number of target positions that are cached."""
        return self.target.length

    @property
    def capacity(self) -> int:
        return self.target.capacity

    @property
    def knows_source(self) -> bool:
        return self.source.length > 0

    def advance(self, length: int) -> None:
        """Counts `length` further positions of the target, and all of the source, as filled."""
        self.target.length += length
        self.source.length = self.source.capacity
