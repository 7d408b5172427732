"""Reading further tokens, with the keys and values of those before: what generation spends its time in."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.errors import ConfigError, HeadError, ShapeError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.parts.positions import PositionHooks
from engine.probe import identity
from engine.sample import single_row
from engine.sample.row_products import Arithmetic
from engine.sample.single_row import Mixing, Products

ROOM = 64  # positions that a cache begins with; it doubles as often as it must


class Decoder:
    """A causal model that holds the keys and values of what it has read.

    `read(ids)` takes further tokens and returns the logits after the last one. A single token goes the short
    way of `engine.sample.single_row` if every part of the model is known there, and through the model's own
    forward if not. On the short way the model's small matrices are copied, where a product is faster that
    way: a Decoder does not see later changes of them. `products` (see `ready`) are matrices made before, for
    many Decoders, perhaps in another arithmetic: what is read more than one token at a time, as a prompt is,
    stays exact. Room is made as it is needed, up to `capacity` positions (the context by default; what is
    asked for is made at once). Use it inside `torch.inference_mode()`. Raises ShapeError for a model that is
    not causal, HeadError for one without an output head.
    """

    def __init__(
        self, model: Transformer, capacity: int | None = None, products: Products | None = None
    ) -> None:
        context = model.config.context
        if not model.can_cache:
            raise ShapeError(
                "only a causal model can keep keys and values: without the mask every later token changes"
                " them"
            )
        if not model.output.present:
            raise HeadError("this model has no output head: it reads, and writes nothing")
        self.model, self.limit = model, capacity or context
        self.cache = KVCache(model.config, capacity or min(context, ROOM), model.embedding)
        self._row = None
        if _known(model):
            self._row = _Row(model, self.cache, products or Products(model.embedding))

    @property
    def length(self) -> int:
        """Positions read so far."""
        return self.cache.length

    def reset(self) -> None:
        """Forgets what was read."""
        self.cache.length = 0

    def read(self, ids: Sequence[int]) -> Tensor:
        """ids, at least one -> logits (vocab,) after the last. Raises ShapeError when they do not fit behind
        those read before.
        """
        need = self.length + len(ids)
        if self.cache.capacity < need <= self.limit:
            self.cache.grow(min(self.limit, max(need, 2 * self.cache.capacity)))
            if self._row is not None:
                self._row.hold(self.cache)
        if self._row is not None and len(ids) == 1 and need <= self._row.rows:
            return self._row.read(ids[0])
        tokens = torch.tensor([list(ids)], dtype=torch.int64, device=self.model.embedding.device)
        return self.model(tokens, cache=self.cache)[0, -1]


def _known(model: Transformer) -> bool:
    """True if the fast path computes the same as the model's own forward: it knows no dropout and
    no window.
    """
    c = model.config
    blocks = [part for b in model.blocks for part in (b, b.mixer, b.ffn, b.norm1, b.norm2)]
    drops = model.training and c.dropout > 0
    odd = drops or c.window > 0 or not model.parts.is_plain_stack
    ends = (model.norm_embed or model.norm_final, model.norm_final, model.output)
    return not odd and single_row.known(model.positions, *ends, *blocks)


@torch.inference_mode()
def ready(model: Transformer, arithmetic: Arithmetic = "float32") -> Products:
    """A model's products in one arithmetic, for all Decoders that are to read with them. bfloat16 takes 2
    bytes for each weight of a large matrix, int8 one, float32 none beside the model's own.

    Raises ConfigError where this machine lacks the arithmetic, or the model has a part that only its own
    forward knows.
    """
    products = Products(model.embedding, arithmetic)
    if not (model.can_cache and _known(model)):
        raise ConfigError("arithmetic", arithmetic, "needs a causal model of parts that are all known")
    _Row(model, KVCache(model.config, 1, model.embedding), products)
    return products


class _Row:
    """A model whose every part is known, for one token at a time."""

    def __init__(self, model: Transformer, cache: KVCache, products: Products) -> None:
        self.positions, self.reach = model.positions, model.positions.reach(model.config)
        self.embedding = model.embedding.detach()
        self.embedding_scale = model.embedding_scale
        types = model.token_types
        self.type = None if types is None else types[0].detach()
        self.norm_embed = None if model.norm_embed is None else single_row.norm_of(model.norm_embed)
        self.blocks = [
            single_row.row_of(block, cache, index, products) for index, block in enumerate(model.blocks)
        ]
        self.norm_final = single_row.norm_of(model.norm_final)
        self.unembedding = single_row.unembedding(model.output, model.output_matrix, products)
        self.hold(cache)

    def hold(self, cache: KVCache) -> None:
        """Follows a cache that has grown."""
        self.cache = cache
        self.hooks: PositionHooks | None = None  # the tables of all `rows` positions, made at the first token
        self.rows = cache.capacity if self.reach is None else min(cache.capacity, self.reach)
        for _, parts in self.blocks:
            if isinstance(parts.mixer, Mixing):
                parts.mixer.hold(cache)

    def read(self, token: int) -> Tensor:
        at = self.cache.length
        x = self.embedding.narrow(0, token, 1)  # (1, d_model)
        if self.hooks is None:
            self.hooks = single_row.tables(self.positions, self.rows, x)
        hooks = self.hooks.at(at)
        x = self._entered(x, hooks.embed(x))
        for connect, parts in self.blocks:
            x = connect(parts, x, hooks, None, identity, None)
        self.cache.length = at + 1
        return self.unembedding(self.norm_final(x))[0].clone()

    def _entered(self, x: Tensor, added: Tensor | None) -> Tensor:
        """A row of the embedding (1, d_model) as the first block reads it."""
        if self.embedding_scale is not None:
            x = x * self.embedding_scale
        for each in (added, self.type):
            if each is not None:
                x = x + each
        return x if self.norm_embed is None else self.norm_embed(x)
