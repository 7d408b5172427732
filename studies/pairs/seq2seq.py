"""Models with an encoder, of the same parts as engine.model. Seq2Seq: an encoder reads a source, a decoder
attends to it while it writes a target (Vaswani et al. 2017). Classifier: an encoder with labels (BERT).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import Init, ModelConfig
from engine.errors import ConfigError, ShapeError
from engine.model import BlockStack, Transformer, built, check_tokens
from engine.parts.attention import causal_mask, check_causal, check_padding, decoder_masks, padding_mask
from engine.parts.blocks import PassContext
from engine.parts.cache import PairCache
from engine.parts.output import Output
from engine.parts.parameters import InitialValues
from engine.parts.positions import PositionHooks
from engine.parts.registry import HEALTHY, Parts
from engine.probe import Probe, identity, scoped
from studies.pairs.config import Seq2SeqConfig


@dataclass(frozen=True, eq=False)
class Memory:
    """The encoder's output for a batch of sources: the decoder attends to it, and never changes it.

    vectors (batch, source, d_model) are the encoder's final ones; padding (batch, 1, 1, source) is added to
    the scores of cross-attention: -inf where a source is over.
    """

    vectors: Tensor = field(repr=False)
    padding: Tensor = field(repr=False)

    @property
    def batch(self) -> int:
        return self.vectors.shape[0]

    @property
    def length(self) -> int:
        """Returns the number of positions of the longest source."""
        return self.vectors.shape[1]


class Seq2Seq(nn.Module):
    """An encoder and a decoder over one embedding, which is the output's matrix too where it is tied.

    `config` is the resolved configuration. The names of parameters and of activations begin with `encoder.`
    or `decoder.`; `embedding` and `logits` belong to both.
    """

    initial_values: ClassVar[InitialValues] = {"embedding": "table", "unembedding": "matrix"}

    def __init__(self, config: Seq2SeqConfig, parts: Parts = HEALTHY) -> None:
        super().__init__()
        self.parts = parts
        self.config = c = config.validate().resolved()
        self.embedding = nn.Parameter(torch.empty(c.decoder.vocab_size, c.decoder.d_model))
        self.encoder = BlockStack(c.encoder, parts)
        self.decoder = BlockStack(c.decoder, parts, crossing=True)
        self.output: Output = parts.output(c.decoder)(c.decoder)
        tied = c.decoder.tie_embeddings
        self.unembedding = None if tied else nn.Parameter(torch.empty_like(self.embedding))

    def forward(
        self, source: Tensor, target: Tensor, probe: Probe = identity, padding: Tensor | None = None
    ) -> Tensor:
        """Returns the logits (batch, query, vocab) of the token after each of the target (batch, query)
        int64, given a source (batch, source) int64. Raises ShapeError as `encode` and `decode` do.
        """
        return self.decode(target, self.encode(source, probe, padding), probe)

    def encode(self, source: Tensor, probe: Probe = identity, padding: Tensor | None = None) -> Memory:
        """Reads a source (batch, source) int64, filled up with `config.pad`; `padding` (batch, 1, 1, source)
        replaces the mask of that. Raises ShapeError for another rank or dtype, no token, or more than the
        context.
        """
        stack, probe = self.encoder, scoped(probe, "encoder.")
        x, hooks = self._embed(stack, source, "source", probe)
        if padding is None:
            padding = padding_mask(source, self.config.pad, x)
        check_padding(padding, *source.shape)
        context = PassContext(hooks, padding, probe)
        x = self.parts.stack(stack.blocks, stack.norm_final, x, context)  # type: ignore[arg-type]
        return Memory(probe("norm_final", stack.norm_final(x)), padding)

    def decode(
        self, target: Tensor, memory: Memory, probe: Probe = identity, cache: PairCache | None = None
    ) -> Tensor:
        """Returns the logits (batch, query, vocab) of a target (batch, query) int64 that begins with
        `config.begin`, or continues the tokens of a cache. Raises ShapeError for another rank or dtype,
        another number of rows than the memory has, or more than the context or the cache.
        """
        stack, inside = self.decoder, scoped(probe, "decoder.")
        start = 0 if cache is None else cache.length
        x, hooks = self._embed(stack, target, "target", inside, start)
        length, vectors = target.shape[1], memory.vectors
        if len(target) != memory.batch:
            raise ShapeError(f"{len(target)} targets do not belong to {memory.batch} sources: one for each")
        if cache is not None:
            self._check(cache, start + length)
            vectors = vectors[:, :0] if cache.knows_source else vectors
        check_padding(memory.padding, memory.batch, memory.length)
        self_mask, cross_mask = self._masks(length, x, start, memory.padding)
        self_cache, cross_cache = (None, None) if cache is None else (cache.target, cache.source)
        cross = PassContext(mask=cross_mask, cache=cross_cache, memory=vectors)
        context = PassContext(hooks, self_mask, inside, self_cache, cross=cross)
        x = self.parts.stack(stack.blocks, stack.norm_final, x, context)  # type: ignore[arg-type]
        if cache is not None:
            cache.advance(length)
        x = inside("norm_final", stack.norm_final(x))
        return self.output(x, self.output_matrix, probe)

    def _embed(
        self, stack: BlockStack, tokens: Tensor, what: str, probe: Probe, start: int = 0
    ) -> tuple[Tensor, PositionHooks]:
        """Returns the input (batch, position, d_model) of a stack's first block and the hooks of its
        positions. `what` is source or target. Raises ShapeError as `encode` and `decode` do.
        """
        check_tokens(tokens, f"the {what}")
        length, context = tokens.shape[1], stack.config.context
        if start + length > context:
            raise ShapeError(
                f"a {what} of {start + length} tokens is too long: this model takes at most {context}"
            )
        x = probe("embed", stack.scaled(F.embedding(probe("tokens", tokens), self.embedding)))
        hooks = stack.hooks(length, x, start)
        return stack.add_positions(x, hooks, probe), hooks

    def _masks(
        self, length: int, like: Tensor, start: int, padding: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """Returns the masks of the decoder's self-attention and cross-attention, added to the scores."""
        is_last = length == 1 and self._plain  # a single query comes last, and sees everything
        causal = None if is_last else self.parts.mask(length, like, start)
        check_causal(causal, length, start)
        return self.parts.decoder_masks(causal, padding)

    @property
    def can_cache(self) -> bool:
        """True if keys and values can be cached: later tokens change nothing before them."""
        return self._plain and self.parts.mixer(self.config.decoder).cacheable

    @property
    def _plain(self) -> bool:
        """True if the decoder's self-attention has the causal mask, and no other."""
        return self.parts.mask is causal_mask and self.parts.decoder_masks is decoder_masks

    def cache(self, memory: Memory, capacity: int | None = None) -> PairCache:
        """Returns an empty cache for `capacity` tokens of a target (the decoder's context if None)."""
        room = capacity or self.config.decoder.context
        return PairCache(self.config.decoder, room, memory.length, self.embedding, memory.batch)

    def _check(self, cache: PairCache, length: int) -> None:
        if not self.can_cache:
            raise ShapeError(
                "keys and values cannot be kept here: without the causal mask every later token changes them"
            )
        cache.target.check_room(length)

    @property
    def output_matrix(self) -> Tensor:
        """Returns W_U^T (vocab, d_model): the embedding itself if tied (Press & Wolf 2017)."""
        return self.embedding if self.unembedding is None else self.unembedding


def build_pair(
    config: Seq2SeqConfig,
    seed: int = 0,
    device: str | torch.device = "cpu",
    parts: Parts = HEALTHY,
    init: Init = "scaled",
) -> Seq2Seq:
    """Builds an encoder-decoder as `engine.model.build` builds a Transformer; a decoder's block writes to its
    stream three times, an encoder's twice. Raises ConfigError.
    """
    return built(lambda: Seq2Seq(config, parts), seed, device, init)


def reader_of(model: Seq2Seq) -> Transformer:
    """Returns the encoder as a Transformer without an output head, sharing its weights: its final vectors are
    the memory of one source without padding.
    """
    with torch.device("meta"):
        encoder = Transformer(model.config.encoder, model.parts)
    weights = {"embedding": model.embedding, **model.encoder.state_dict(keep_vars=True)}
    encoder.load_state_dict(weights, strict=True, assign=True)
    return encoder.train(model.training)


class Classifier(nn.Module):
    """An encoder with a pooler, and W_label (label, d_model) with its bias on the pooled vector (Devlin et
    al. 2018, 4.1). `config` is the encoder's resolved configuration.
    """

    initial_values: ClassVar[InitialValues] = {"w_label": "matrix"}

    def __init__(self, config: ModelConfig, labels: int, pad: int = 0, parts: Parts = HEALTHY) -> None:
        super().__init__()
        _check_classifier(config, labels)
        self.encoder = Transformer(config, parts)
        self.parts, self.config, self.pad = parts, self.encoder.config, pad
        self.w_label = nn.Linear(config.d_model, labels)

    def forward(self, tokens: Tensor, probe: Probe = identity) -> Tensor:
        """Returns label logits (batch, label) of tokens (batch, position) int64. Raises ShapeError."""
        padding = padding_mask(tokens, self.pad, self.encoder.embedding) if tokens.dim() == 2 else None
        pooled = self.encoder.pooled(self.encoder(tokens, probe, padding=padding), probe, padding)
        pooled = F.dropout(pooled, self.config.dropout, self.training)
        return probe("label_logits", self.w_label(pooled))


def _check_classifier(config: ModelConfig, labels: int) -> None:
    if config.causal:
        raise ConfigError(
            "causal", True, "must be False for a classifier: each of its tokens sees the whole text"
        )
    if config.output_head != "none" or not config.pooler:
        raise ConfigError("pooler", config.pooler, "must be True, and output_head 'none', for a classifier")
    if labels < 2:
        raise ConfigError("labels", labels, "must be at least 2: with fewer there is nothing to tell apart")


def build_classifier(
    config: ModelConfig,
    labels: int,
    seed: int = 0,
    device: str | torch.device = "cpu",
    parts: Parts = HEALTHY,
    init: Init = "scaled",
) -> Classifier:
    """Builds a classifier as `engine.model.build` builds a Transformer. Raises ConfigError."""
    return built(lambda: Classifier(config, labels, parts=parts), seed, device, init)
