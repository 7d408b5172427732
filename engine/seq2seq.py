"""The encoder-decoder: one Transformer reads a source, another writes a target and looks at the first as it
writes (Vaswani et al. 2017). Both are made of the parts that engine.model is made of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import Init
from engine.errors import ShapeError
from engine.model import BlockStack, materialise
from engine.parts.cache import PairCache
from engine.parts.initial import InitialValues, initialise
from engine.parts.masks import causal_mask, check_causal, check_padding, decoder_masks, padding_mask
from engine.parts.positions import PositionHooks
from engine.parts.protocols import Output, Parts
from engine.parts.registry import HEALTHY
from engine.probe import Probe, identity, scoped
from engine.seq2seq_config import Seq2SeqConfig


@dataclass(frozen=True, eq=False)
class Memory:
    """Sources that were read: what a decoder looks at while it writes. It never changes, so it is made once.

    vectors (batch, source, d_model) are the encoder's last ones, padding (batch, 1, 1, source) is added to
    the scores of whoever looks at them: -inf where a source is over.
    """

    vectors: Tensor = field(repr=False)
    padding: Tensor = field(repr=False)

    @property
    def batch(self) -> int:
        return self.vectors.shape[0]

    @property
    def length(self) -> int:
        """Positions of the longest source."""
        return self.vectors.shape[1]

    def rows(self, rows: Tensor) -> Memory:
        """Those of some of the sources (row,), perhaps the same one several times."""
        return Memory(self.vectors[rows], self.padding[rows])


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
        """source (batch, source) and target (batch, query), int64 -> logits (batch, query, vocab): of what
        follows each token of the target. Raises ShapeError as `encode` and `decode` do.
        """
        return self.decode(target, self.encode(source, probe, padding), probe)

    def encode(self, source: Tensor, probe: Probe = identity, padding: Tensor | None = None) -> Memory:
        """source (batch, source) int64, filled up with `config.pad` -> what the decoder reads.

        `padding` (batch, 1, 1, source) says which tokens are none, in the place of what is read from the
        source itself. Raises ShapeError for another rank or dtype, for a source without a token, and for
        one that is longer than the encoder's context.
        """
        tower, probe = self.encoder, scoped(probe, "encoder.")
        x, hooks = self._entered(tower, source, "source", probe)
        if padding is None:
            padding = padding_mask(source, self.config.pad, x)
        check_padding(padding, *source.shape)
        x = self.parts.stack(tower.blocks, tower.norm_final, x, hooks, padding, probe, None)  # type: ignore[arg-type]
        return Memory(probe("norm_final", tower.norm_final(x)), padding)

    def decode(
        self, target: Tensor, memory: Memory, probe: Probe = identity, cache: PairCache | None = None
    ) -> Tensor:
        """target (batch, query) int64, which begins with `config.begin` -> logits (batch, query, vocab).

        With a cache, `target` follows the tokens that it holds, and it then holds them too. Raises ShapeError
        for another rank or dtype, for another number of rows than the memory has, and for a target that is
        longer than the decoder's context or than the cache.
        """
        tower, inside = self.decoder, scoped(probe, "decoder.")
        start = 0 if cache is None else cache.length
        x, hooks = self._entered(tower, target, "target", inside, start)
        length, vectors = target.shape[1], memory.vectors
        _check_count(len(target), memory.batch)
        if cache is not None:
            self._check(cache, start + length)
            vectors = vectors[:, :0] if cache.knows_source else vectors
        check_padding(memory.padding, memory.batch, memory.length)
        own, across = self._masks(length, x, start, memory.padding)
        blocks = [partial(block, memory=vectors, across=across) for block in tower.blocks]
        x = self.parts.stack(blocks, tower.norm_final, x, hooks, own, inside, cache)  # type: ignore[arg-type]
        if cache is not None:
            cache.passed(length)
        x = inside("norm_final", tower.norm_final(x))
        return self.output(x, self.output_matrix, probe)

    def _entered(
        self, tower: BlockStack, tokens: Tensor, what: str, probe: Probe, start: int = 0
    ) -> tuple[Tensor, PositionHooks]:
        """Tokens (batch, position) as the tower's first block reads them, and the seams of their places."""
        x = self._embedded(tower, tokens, what, probe)
        length = tokens.shape[1]
        _check_length(start + length, tower.config.context, what)
        hooks = tower.hooks(length, x, start)
        return tower.add_positions(x, hooks, probe), hooks

    def _embedded(self, tower: BlockStack, tokens: Tensor, what: str, probe: Probe) -> Tensor:
        if tokens.dim() != 2 or tokens.dtype != torch.int64:
            raise ShapeError(
                f"the {what} must be int64 of shape (batch, position), not {tokens.dtype} of shape"
                f" {tuple(tokens.shape)}"
            )
        if tokens.numel() == 0:
            raise ShapeError(f"a {what} of shape {tuple(tokens.shape)} is empty: give at least one token")
        return probe("embed", tower.scaled(F.embedding(probe("tokens", tokens), self.embedding)))

    def _masks(
        self, length: int, like: Tensor, start: int, padding: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """What is added to the scores of a decoder's two attentions: (its own, those of the source)."""
        alone = length == 1 and self._plain  # it comes last, and sees everything
        causal = None if alone else self.parts.mask(length, like, start)
        check_causal(causal, length, start)
        return self.parts.decoder_masks(causal, padding)

    @property
    def can_cache(self) -> bool:
        """Whether keys and values may be kept while a target grows: under the causal mask alone do later
        tokens change nothing before them.
        """
        return self._plain and self.parts.mixer(self.config.decoder).cacheable

    @property
    def _plain(self) -> bool:
        """Whether the decoder's own text has the causal mask, and no other."""
        return self.parts.mask is causal_mask and self.parts.decoder_masks is decoder_masks

    def cache(self, memory: Memory, capacity: int | None = None) -> PairCache:
        """An empty cache for a target of at most `capacity` tokens (the decoder's context if None)."""
        room = capacity or self.config.decoder.context
        return PairCache(self.config.decoder, room, memory.length, self.embedding, memory.batch)

    def _check(self, cache: PairCache, length: int) -> None:
        if not self.can_cache:
            raise ShapeError(
                "keys and values cannot be kept here: without the causal mask every later token changes them"
            )
        if length > cache.capacity:
            raise ShapeError(
                f"a cache of {cache.capacity} positions, {cache.length} of them filled, cannot take"
                f" {length - cache.length} more"
            )

    @property
    def output_matrix(self) -> Tensor:
        """W_U^T, (vocab, d_model): the embedding itself when tied (Press & Wolf 2017)."""
        return self.embedding if self.unembedding is None else self.unembedding


def _check_count(targets: int, sources: int) -> None:
    if targets != sources:
        raise ShapeError(f"{targets} targets do not belong to {sources} sources: one for each")


def _check_length(length: int, context: int, what: str) -> None:
    if length > context:
        raise ShapeError(f"a {what} of {length} tokens is too long: this model takes at most {context}")


def build_pair(
    config: Seq2SeqConfig,
    seed: int = 0,
    device: str | torch.device = "cpu",
    parts: Parts = HEALTHY,
    init: Init = "scaled",
) -> Seq2Seq:
    """An encoder-decoder with its initial weights, as `engine.model.build` makes a Transformer. A block of
    the encoder writes to its stream twice, one of the decoder three times.

    Raises ConfigError when the configuration cannot be built.
    """
    with torch.device("meta"):
        model = Seq2Seq(config, parts)
    if torch.device(device).type != "meta":
        materialise(model, device)
        initialise(model, seed, init)
    return model
