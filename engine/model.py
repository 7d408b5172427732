"""The Transformer, assembled from its parts. One definition serves every variant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import Init, ModelConfig, ResolvedConfig
from engine.errors import HeadError, ShapeError
from engine.parts.attention import causal_mask, check_padding, window_mask
from engine.parts.blocks import Block, DecoderBlock, PassContext
from engine.parts.norms import NoNorm, Norm
from engine.parts.output import POOLERS, Output
from engine.parts.parameters import InitialValues, initialise
from engine.parts.positions import PositionHooks, Scheme
from engine.parts.registry import HEALTHY, Parts
from engine.probe import Probe, identity

if TYPE_CHECKING:
    from engine.parts.cache import KVCache


class BlockStack(nn.Module):
    """Positions, blocks and the last norm. A Transformer is one; an encoder-decoder (studies.pairs.seq2seq)
    is two over one embedding.

    `crossing`: each block reads a memory too.
    """

    def __init__(self, config: ResolvedConfig, parts: Parts, crossing: bool = False) -> None:
        super().__init__()
        self.parts = parts
        self.config = c = config
        self.embedding_scale = math.sqrt(c.d_model) if c.embedding_scale else None
        self.norm_embed: Norm | None = parts.norm(c)(c) if c.embedding_norm else None
        self.positions: Scheme = parts.position(c)(c)
        block: type[Block] | type[DecoderBlock] = parts.crossing(c) if crossing else parts.wiring(c)
        self.blocks = nn.ModuleList(block(c, parts) for _ in range(c.n_layers))
        if c.global_every:
            for each, window in zip(self.blocks, c.windows, strict=True):
                each.mixer.window = window  # type: ignore[union-attr]
        self.norm_final: Norm = NoNorm(c) if block.ends_normed else parts.norm(c)(c)

    @property
    def residual_writes(self) -> int:
        """Number of sublayers that add to the residual stream: two a block, three with cross-attention."""
        return sum(3 if hasattr(block, "cross") else 2 for block in self.blocks)

    def scaled(self, x: Tensor) -> Tensor:
        """Multiplies rows of an embedding (batch, position, d_model) by sqrt(d_model), if scaled."""
        return x if self.embedding_scale is None else x * self.embedding_scale

    def add_positions(
        self, x: Tensor, hooks: PositionHooks, probe: Probe, types: Tensor | None = None
    ) -> Tensor:
        """Adds positions and `types` to embedded tokens x (batch, position, d_model): the input of the first
        block, of the same shape.
        """
        added = hooks.embed(x)
        if added is not None:
            x = x + probe("pos_embed", added)
        if types is not None:
            x = x + probe("type_embed", types)
        if self.norm_embed is not None:
            x = probe("norm_embed", self.norm_embed(x))
        return F.dropout(x, self.config.dropout, self.training)

    def hooks(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        """Returns the position hooks of positions start .. start + length - 1."""
        return self.positions.prepare(length, like, start)


class Transformer(BlockStack):
    """Decoder-only (causal) or encoder-only, by `config.causal`.

    `config` is the resolved configuration: every derived field is filled in. `parts` says what stands behind
    the names in it.
    """

    initial_values: ClassVar[InitialValues] = {
        "embedding": "table",
        "token_types": "table",
        "unembedding": "matrix",
    }

    def __init__(self, config: ModelConfig, parts: Parts = HEALTHY) -> None:
        super().__init__(config.validate().resolved(), parts)
        c = self.config
        self.embedding = nn.Parameter(torch.empty(c.vocab_size, c.d_model))
        self.token_types = nn.Parameter(torch.empty(c.token_types, c.d_model)) if c.token_types else None
        self.output: Output = parts.output(c)(c)
        self.pooler = POOLERS[c.pooling](c) if c.pooler else None
        own = self.output.present and not c.tie_embeddings
        self.unembedding = nn.Parameter(torch.empty(c.vocab_size, c.d_model)) if own else None

    def forward(
        self,
        tokens: Tensor,
        probe: Probe = identity,
        cache: KVCache | None = None,
        hooks: PositionHooks | None = None,
        types: Tensor | None = None,
        padding: Tensor | None = None,
    ) -> Tensor:
        """Maps tokens (batch, position) int64 to logits (batch, position, vocab); without an output head, to
        the last vectors (batch, position, d_model).

        `types` say which text each token belongs to, where the model has a table for that; None: all to the
        first. `padding` (batch, 1, 1, key) is added to all scores: -inf for padding
        (engine.parts.attention.padding_mask). `hooks` replace those of the position scheme: with
        `PositionHooks()` the model has no positions. With a cache, `tokens` follow those that it holds, and
        it then holds them too (causal models only).
        Raises ShapeError for another rank or dtype, for no tokens, for types that do not fit, and for more
        positions than a learned table or the cache holds.
        """
        check_tokens(tokens, "tokens")
        length = tokens.shape[1]
        tokens = probe("tokens", tokens)
        if not isinstance(tokens, Tensor):
            raise ShapeError("a probe must return the tensor that it is shown, or another of its shape")
        x = probe("embed", self.embedded(tokens))  # (batch, position) -> (batch, position, d_model)
        start = 0 if cache is None else cache.length
        if cache is not None:
            self._check(cache, start + length)
        hooks = hooks or self.hooks(length, x, start)
        x = self.add_positions(x, hooks, probe, self._typed(tokens, types))
        mask = self.mask(length, x, start)
        if padding is not None:
            check_padding(padding, len(tokens), start + length)
            mask = padding if mask is None else mask + padding
        context = PassContext(hooks, mask, probe, cache)
        x = self.parts.stack(self.blocks, self.norm_final, x, context)  # type: ignore[arg-type]
        if cache is not None:
            cache.length += length
        return self.logits(x, probe)

    def embedded(self, tokens: Tensor) -> Tensor:
        """Looks up tokens (batch, position) in the embedding: (batch, position, d_model), times sqrt(d_model)
        if it is scaled.
        """
        return self.scaled(F.embedding(tokens, self.embedding))

    def _typed(self, tokens: Tensor, types: Tensor | None) -> Tensor | None:
        """Returns what is added for the types of tokens, (batch, position, d_model); None for nothing."""
        if self.token_types is None and types is None:
            return None
        if self.token_types is None:
            raise ShapeError("this model has no table for the types of tokens: give it none")
        types = torch.zeros_like(tokens) if types is None else types
        if types.shape != tokens.shape:
            raise ShapeError(
                f"types must be of the shape of tokens, {tuple(tokens.shape)}: one for each token"
            )
        return F.embedding(types, self.token_types)

    def logits(self, x: Tensor, probe: Probe = identity) -> Tensor:
        """Applies the final norm and the output head to a stream x (batch, position, d_model): (batch,
        position, vocab).
        """
        return self.output(probe("norm_final", self.norm_final(x)), self.output_matrix, probe)

    def pooled(self, x: Tensor, probe: Probe = identity, padding: Tensor | None = None) -> Tensor:
        """Pools the last vectors x (batch, position, d_model) of a model without an output head into one for
        each text, (batch, d_model); `padding` as it read them. Raises HeadError for a model without a pooler.
        """
        if self.pooler is None:
            raise HeadError("this model has no pooler: it makes no vector for a whole text")
        return self.pooler(x, probe, padding)

    def mask(self, length: int, like: Tensor, start: int = 0) -> Tensor | None:
        """Returns what is added to the scores of these queries and all keys so far, (query, key). None
        where nothing is hidden: without a mask, or for a last query within the window.
        """
        return mask_of(self.config, self.parts, length, like, start)

    @property
    def can_cache(self) -> bool:
        """True if keys and values can be cached: a causal mask hides later tokens from earlier ones."""
        return self.parts.can_cache(self.config)

    def _check(self, cache: KVCache, length: int) -> None:
        if not self.can_cache:
            raise ShapeError(
                "only a causal model can keep keys and values: without the mask every later token changes"
                " them"
            )
        cache.check_room(length)

    @property
    def output_matrix(self) -> Tensor:
        """W_U^T, (vocab, d_model): the embedding itself when tied (Press & Wolf 2017)."""
        return self.embedding if self.unembedding is None else self.unembedding


def check_tokens(tokens: Tensor, name: str) -> None:
    """Raises ShapeError, beginning with `name`, unless tokens are int64 (batch, position) and not empty."""
    if not isinstance(tokens, Tensor):
        raise ShapeError(
            f"{name} must be a tensor, such as torch.tensor([[3, 1, 4]]), not {type(tokens).__name__}"
        )
    shape = tuple(tokens.shape)
    if len(shape) != 2 or tokens.dtype != torch.int64:
        raise ShapeError(
            f"{name} must be int64 of shape (batch, position), not {tokens.dtype} of shape {shape}"
        )
    if 0 in shape:
        raise ShapeError(f"{name} of shape {shape} cannot be empty: give at least one token")


def mask_of(config: ResolvedConfig, parts: Parts, length: int, like: Tensor, start: int = 0) -> Tensor | None:
    """Returns what a model adds to its scores, (query, key): the mask of its parts, and -inf for keys
    before its sliding window, where all layers have the same.
    """
    if not config.causal:
        return None
    window = None
    if 0 < config.window < start + length and not config.global_every:
        window = window_mask(length, like, config.window, start)
    if length == 1 and parts.mask is causal_mask and not config.global_every:
        return window
    mask = parts.mask(length, like, start)
    if mask is None or window is None:
        return window if mask is None else mask
    return mask + window


def build(
    config: ModelConfig,
    seed: int = 0,
    device: str | torch.device = "cpu",
    parts: Parts = HEALTHY,
    init: Init = "scaled",
) -> Transformer:
    """Builds a model with its initial weights. The same seed gives the same weights; on 'meta' there are
    none. `parts` are what it is made of: other ones are how a deliberate fault gets in. `init` says how the
    weights are drawn (`initialise`).

    Raises ConfigError when the configuration cannot be built.
    """
    return built(lambda: Transformer(config, parts), seed, device, init)


M = TypeVar("M", bound=nn.Module)


def built(make: Callable[[], M], seed: int, device: str | torch.device, init: Init) -> M:
    """Makes a model on the meta device and, for another one, gives it memory and its initial values there."""
    with torch.device("meta"):
        model = make()
    if torch.device(device).type != "meta":
        materialise(model, device)
        initialise(model, seed, init)
    return model


def materialise(model: M, device: str | torch.device) -> M:
    """Gives a model of the meta device memory on another one: zeros, not touched before they are used.
    `to_empty` goes over the meta device, and imports sympy there (half a second of a server's start).
    """
    return model._apply(lambda p: torch.zeros(p.shape, dtype=p.dtype, device=device))


def count_parameters(config: ModelConfig, parts: Parts = HEALTHY) -> int:
    """Returns the number of parameters, counted on the meta device: exact, and without memory."""
    return sum(p.numel() for p in build(config, device="meta", parts=parts).parameters())
