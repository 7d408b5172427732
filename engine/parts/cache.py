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

    def layer(self, index: int) -> LayerCache:
        return LayerCache(self.held[index], self.length)

    def grow(self, capacity: int) -> None:
        """Makes room for `capacity` positions; what is held stays. Never shrinks."""
        if capacity > self.capacity:
            wider = self.held.new_empty((*self.held.shape[:4], capacity, self.held.shape[5]))
            wider[..., : self.length, :] = self.held[..., : self.length, :]
            self.held = wider

    def branch(self, rows: Sequence[int]) -> KVCache:
        """A cache of other texts that begin alike: row i of the new one is a copy of row rows[i]."""
        going = KVCache.__new__(KVCache)
        going.held = self.held.index_select(2, torch.tensor(rows, device=self.held.device))
        going.length = self.length
        return going


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

    def layer(self, index: int) -> tuple[LayerCache, LayerCache]:
        return self.own.layer(index), self.across.layer(index)

    def passed(self, length: int) -> None:
        """`length` further positions are read, and the source is."""
        self.own.length += length
        self.across.length = self.across.capacity


class LayerCache:
    """One layer's part of a KVCache during one forward pass."""

    def __init__(self, held: Tensor, start: int) -> None:
        self.held, self.start = held, start  # (2, batch, kv_head, capacity, d_head)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores the new k and v (batch, kv_head, key, d_head); returns those of all positions so far. No
        gradient passes.
        """
        stop = self.start + k.shape[2]
        if stop > self.start:
            self.held[0, :, :, self.start : stop] = k.detach()
            self.held[1, :, :, self.start : stop] = v.detach()
        return self.held[0, :, :, :stop], self.held[1, :, :, :stop]
