"""A decoder with a KV cache, the only user of the fast path for single tokens (engine.sample.single_row)."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.errors import ConfigError, HeadError, ShapeError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.parts.forward_pass import PassContext
from engine.parts.positions import PositionHooks
from engine.sample import single_row
from engine.sample.row_products import Arithmetic
from engine.sample.single_row import AttentionStep, Products

ROOM = 64  # positions of a new cache, which doubles as needed


class Decoder:
    """A causal model with the keys and values of the tokens that it has read.

    `read(ids)` takes further tokens and returns the logits after the last one. A single token takes the fast
    path (`engine.sample.single_row`) if that supports every part of the model, and the model's own forward
    if not. The fast path copies small matrices: a Decoder does not see later changes of them. `products`
    (see `ready`) are matrices prepared for many Decoders, perhaps in another arithmetic; several tokens at
    once, such as a prompt, are read exactly in any case. The cache grows as needed up to the context;
    `capacity` positions are allocated at once. Use it inside `torch.inference_mode()`. Raises ShapeError for
    a model that is not causal, HeadError for one without an output head.
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
        self._fast = None
        if _has_fast_path(model):
            self._fast = _FastPath(model, self.cache, products or Products(model.embedding))

    @property
    def length(self) -> int:
        """Returns the number of positions read so far."""
        return self.cache.length

    def reset(self) -> None:
        """Empties the cache."""
        self.cache.length = 0

    def read(self, ids: Sequence[int]) -> Tensor:
        """Reads at least one id and returns the logits (vocab,) after the last. Raises ShapeError when they
        do not fit behind those read before.
        """
        need = self.length + len(ids)
        if self.cache.capacity < need <= self.limit:
            self.cache.grow(min(self.limit, max(need, 2 * self.cache.capacity)))
            if self._fast is not None:
                self._fast.follow(self.cache)
        if self._fast is not None and len(ids) == 1 and need <= self._fast.rows:
            return self._fast.read(ids[0])
        tokens = torch.tensor([list(ids)], dtype=torch.int64, device=self.model.embedding.device)
        return self.model(tokens, cache=self.cache)[0, -1]


class Held:
    """A Decoder, and the ids that it has read: a text that begins alike is not read from its beginning.

    One writer at a time: take `lock` where there may be several.
    """

    def __init__(self, model: Transformer, products: Products | None = None) -> None:
        self.decoder = Decoder(model, products=products)
        self.ids: list[int] = []  # never more than the decoder has read
        self.lock = threading.Lock()

    def begin(self, ids: Sequence[int]) -> Decoder:
        """Returns the decoder, set back to where a text stops being the one that it has read: at least its
        last token is left to read.
        """
        same = 0
        for ours, theirs in zip(self.ids, ids[:-1], strict=False):
            if ours != theirs:
                break
            same += 1
        self.ids = self.ids[:same]
        self.decoder.cache.length = same
        return self.decoder


def _has_fast_path(model: Transformer) -> bool:
    """True if the fast path computes the same as the model's own forward: it knows no dropout and
    no window.
    """
    c = model.config
    blocks = [part for b in model.blocks for part in (b, b.mixer, b.ffn, b.norm1, b.norm2)]
    drops = model.training and c.dropout > 0
    odd = drops or c.window > 0 or not model.parts.is_plain_stack
    ends = (model.norm_embed or model.norm_final, model.norm_final, model.output)
    return not odd and single_row.is_supported(model.positions, *ends, *blocks)


@torch.inference_mode()
def ready(model: Transformer, arithmetic: Arithmetic = "float32") -> Products:
    """Prepares a model's matrices in one arithmetic, for any number of Decoders. bfloat16 takes 2 bytes for
    each weight of a large matrix, int8 one, float32 none beside the model's own.

    Raises ConfigError if this machine lacks the arithmetic, or the fast path does not support the model.
    """
    products = Products(model.embedding, arithmetic)
    if not (model.can_cache and _has_fast_path(model)):
        raise ConfigError("arithmetic", arithmetic, "needs a causal model of parts that are all known")
    _FastPath(model, KVCache(model.config, 1, model.embedding), products)
    return products


class _FastPath:
    """A model whose every part is supported, for one token at a time."""

    def __init__(self, model: Transformer, cache: KVCache, products: Products) -> None:
        self.positions, self.reach = model.positions, model.positions.reach(model.config)
        self.embedding = model.embedding.detach()
        self.embedding_scale = model.embedding_scale
        types = model.token_types
        self.type = None if types is None else types[0].detach()
        self.norm_embed = None if model.norm_embed is None else single_row.norm_of(model.norm_embed)
        self.blocks = [
            single_row.block_step(block, cache, index, products) for index, block in enumerate(model.blocks)
        ]
        self.norm_final = single_row.norm_of(model.norm_final)
        self.unembedding = single_row.unembedding(model.output, model.output_matrix, products)
        self.follow(cache)

    def follow(self, cache: KVCache) -> None:
        """Takes the views of a cache that has grown."""
        self.cache = cache
        self.hooks: PositionHooks | None = None  # of all `rows` positions, computed at the first token
        self.rows = cache.capacity if self.reach is None else min(cache.capacity, self.reach)
        for _, parts in self.blocks:
            if isinstance(parts.mixer, AttentionStep):
                parts.mixer.follow(cache)

    def read(self, token: int) -> Tensor:
        at = self.cache.length
        x = self.embedding.narrow(0, token, 1)  # (1, d_model)
        if self.hooks is None:
            self.hooks = single_row.tables(self.positions, self.rows, x)
        context = PassContext(self.hooks.at(at))
        x = self._add_positions(x, context.hooks.embed(x))
        for connect, parts in self.blocks:
            x = connect(parts, x, context)
        self.cache.length = at + 1
        return self.unembedding(self.norm_final(x))[0].clone()

    def _add_positions(self, x: Tensor, added: Tensor | None) -> Tensor:
        """Returns the input of the first block for a row of the embedding, both (1, d_model)."""
        if self.embedding_scale is not None:
            x = x * self.embedding_scale
        for each in (added, self.type):
            if each is not None:
                x = x + each
        return x if self.norm_embed is None else self.norm_embed(x)
