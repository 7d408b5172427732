"""What generation keeps: keys and values of the positions read so far."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.config import ModelConfig


class KVCache:
    """Keys and values of the positions read so far: under a causal mask they never change, so each is
    computed once.

    One pair of tensors for each layer, (batch, kv_head, capacity, d_head); `length` positions of them are
    filled.
    """

    def __init__(self, config: ModelConfig, capacity: int, like: Tensor, batch: int = 1) -> None:
        c = config.resolved()
        shape = (c.n_layers, 2, batch, c.n_kv_heads, capacity, c.d_head)
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

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores the new k and v (batch, kv_head, key, d_head) of a layer; returns those of all positions so
        far. No gradient passes. `length` stays until all layers have stored theirs.
        """
        held, start = self.held[layer], self.length
        stop = start + k.shape[2]
        if stop > start:
            held[0, :, :, start:stop] = k.detach()
            held[1, :, :, start:stop] = v.detach()
        return held[0, :, :, :stop], held[1, :, :, :stop]

    def grow(self, capacity: int) -> None:
        """Makes room for `capacity` positions; what is held stays. Never shrinks."""
        if capacity > self.capacity:
            wider = self.held.new_empty((*self.held.shape[:4], capacity, self.held.shape[5]))
            wider[..., : self.length, :] = self.held[..., : self.length, :]
            self.held = wider

    def branch(self, rows: Sequence[int]) -> KVCache:
        """A cache of other texts that begin alike: row i of the new one is a copy of row rows[i]."""
        held = self.held.index_select(2, torch.tensor(rows, device=self.held.device))
        return KVCache.holding(held, self.length)


class PairCache:
    """What a decoder with a memory keeps: keys and values of its own text, which grow, and those of the
    source, which are made once, at the first pass.
    """

    def __init__(self, config: ModelConfig, capacity: int, source: int, like: Tensor, batch: int = 1) -> None:
        self.own = KVCache(config, capacity, like, batch)
        self.across = KVCache(config, source, like, batch)

    @property
    def length(self) -> int:
        """Positions of its own text that are read."""
        return self.own.length

    @property
    def capacity(self) -> int:
        return self.own.capacity

    @property
    def knows_source(self) -> bool:
        return self.across.length > 0

    def passed(self, length: int) -> None:
        """`length` further positions are read, and the source is."""
        self.own.length += length
        self.across.length = self.across.capacity
