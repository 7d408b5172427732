"""Reading further tokens of one target, with keys and values of those before and of the source."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.parts import single_query, single_row
from engine.parts.positions import PositionHooks
from engine.parts.single_row import Products
from engine.probe import identity
from engine.seq2seq import Memory, Seq2Seq


class PairDecoder:
    """A decoder at one source that holds keys and values of what it has read. `read(id)` takes a further
    token and returns the logits after it.

    The first goes through the model's own forward, which reads the source; the others the short way of
    `engine.parts.single_query` if every part of the model is known there. On the short way the model's small
    matrices are copied: a PairDecoder does not see later changes of them. Use it inside
    `torch.inference_mode()`. Raises ShapeError where nothing can be kept, or `room` is used up.
    """

    def __init__(self, model: Seq2Seq, memory: Memory, room: int) -> None:
        self.model, self.memory = model, memory
        self.cache = model.cache(memory, room)
        self.short: _Row | None = None

    @property
    def length(self) -> int:
        """Positions read so far."""
        return self.cache.length

    def read(self, token: int) -> Tensor:
        """The logits (vocab,) after a further token."""
        if self.short is not None and self.length < self.short.rows:
            return self.short.read(token)
        ids = torch.tensor([[token]], device=self.model.embedding.device)
        logits = self.model.decode(ids, self.memory, cache=self.cache)[0, -1]
        if self.short is None and _known(self.model, self.memory):
            self.short = _Row(self)
        return logits


def _known(model: Seq2Seq, memory: Memory) -> bool:
    """True if the fast path computes the same as the model's own forward: it knows no dropout and
    no padding.
    """
    tower = model.decoder
    ends = (tower.positions, tower.norm_embed or tower.norm_final, tower.norm_final, model.output)
    odd = (model.training and tower.config.dropout > 0) or not model.parts.is_plain_stack
    plain = not odd and single_row.known(*ends) and all(single_query.known(b) for b in tower.blocks)
    return plain and not bool(memory.padding.any())


class _Row:
    """A decoder whose every part is known, for one token at a time."""

    def __init__(self, of: PairDecoder) -> None:
        model, self.cache = of.model, of.cache
        self.tower = model.decoder
        reach = self.tower.positions.reach(self.tower.config)
        self.rows = self.cache.capacity if reach is None else min(self.cache.capacity, reach)
        self.embedding = model.embedding.detach()
        norm = self.tower.norm_embed
        self.norm_embed = None if norm is None else single_row.norm_of(norm)
        self.norm_final = single_row.norm_of(self.tower.norm_final)
        products = Products(model.embedding)
        self.blocks = [
            single_query.row_of(block, self.cache, index, products)
            for index, block in enumerate(self.tower.blocks)
        ]
        self.unembedding = single_row.unembedding(model.output, model.output_matrix, products)
        self.hooks: PositionHooks = single_row.tables(self.tower.positions, self.rows, self.embedding)

    def read(self, token: int) -> Tensor:
        x = self.tower.scaled(self.embedding.narrow(0, token, 1))  # (1, d_model)
        hooks = self.hooks.at(self.cache.length)
        added = hooks.embed(x)
        x = x if added is None else x + added
        x = x if self.norm_embed is None else self.norm_embed(x)
        for connect, parts in self.blocks:
            x = connect(parts, x, hooks, None, identity, None, parts.read)
        self.cache.passed(1)
        return self.unembedding(self.norm_final(x))[0].clone()
