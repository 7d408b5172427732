"""The Transformer, assembled from its parts. One definition serves every variant."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.errors import ShapeError
from engine.parts.attention import KVCache, causal_mask
from engine.parts.blocks import WIRINGS
from engine.parts.norms import NORMS, NoNorm
from engine.parts.positions import POSITIONS
from engine.probe import Probe, identity, scoped


class Transformer(nn.Module):
    """Decoder-only (causal) or encoder-only, by `config.causal`.

    `config` is the resolved configuration: every derived field is filled in.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config = config.validate().resolved()
        self.embedding = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        self.positions: Any = POSITIONS[config.position](config)  # a Module; mypy cannot see its `prepare`
        self.blocks = nn.ModuleList(WIRINGS[config.wiring](config) for _ in range(config.n_layers))
        # Post-norm blocks end in a norm of their own.
        self.norm_final = NoNorm(config) if config.wiring == "post" else NORMS[config.norm](config)
        self.unembedding = (
            None if config.tie_embeddings else nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        )

    def forward(self, tokens: Tensor, probe: Probe = identity, cache: KVCache | None = None) -> Tensor:
        """tokens (batch, position) int64 -> logits (batch, position, vocab).

        With a cache, `tokens` follow those that it holds, and it then holds them too (causal models only).
        Raises ShapeError for another rank or dtype, for no tokens, and for more positions than a learned
        table or the cache holds.
        """
        if tokens.dim() != 2 or tokens.dtype != torch.int64:
            raise ShapeError(
                f"tokens must be int64 of shape (batch, position), not {tokens.dtype} of shape"
                f" {tuple(tokens.shape)}"
            )
        length = tokens.shape[1]
        if tokens.numel() == 0:
            raise ShapeError(f"tokens of shape {tuple(tokens.shape)} are empty: give at least one token")
        tokens = probe("tokens", tokens)
        x = probe(
            "embed", F.embedding(tokens, self.embedding)
        )  # (batch, position) -> (batch, position, d_model)
        start = 0 if cache is None else cache.length
        if cache is not None and not (self.config.causal and start + length <= cache.capacity):
            raise ShapeError(
                f"a cache of {cache.capacity} positions, {start} of them filled, cannot take {length} more"
                if self.config.causal
                else (
                    "only a causal model can keep keys and values: without the mask every later token changes"
                    " them"
                )
            )
        seams = self.positions.prepare(length, x, start)
        added = seams.embed(x)
        if added is not None:
            x = x + probe("pos_embed", added)
        x = F.dropout(x, self.config.dropout, self.training)
        mask = causal_mask(length, x, start) if self.config.causal and length > 1 else None
        for index, block in enumerate(self.blocks):
            x = block(
                x,
                seams,
                mask,
                scoped(probe, f"blocks.{index}."),
                None if cache is None else cache.layer(index),
            )
        if cache is not None:
            cache.length += length
        x = probe("norm_final", self.norm_final(x))
        return probe(
            "logits", F.linear(x, self.output_matrix)
        )  # (batch, position, d_model) -> (batch, position, vocab)

    @property
    def output_matrix(self) -> Tensor:
        """W_U^T, (vocab, d_model): the embedding itself when tied (Press & Wolf 2017)."""
        return self.embedding if self.unembedding is None else self.unembedding


def build(config: ModelConfig, seed: int = 0, device: str | torch.device = "cpu") -> Transformer:
    """A model with its initial weights. The same seed gives the same weights; on 'meta' there are none.

    Raises ConfigError when the configuration cannot be built.
    """
    with torch.device("meta"):
        model = Transformer(config)
    if torch.device(device).type != "meta":
        model.to_empty(device=device)
        initialise(model, seed)
    return model


@torch.no_grad()
def initialise(model: Transformer, seed: int) -> None:
    """Gives every parameter its starting value, drawn on the CPU so that it is the same on every device.

    Matrices, embeddings and tables: N(0, 0.02). The two matrices of a block that write to the residual
    stream (`w_o`, `w_out`): N(0, 0.02 / sqrt(2 n_layers)), so that the sum of all writes keeps its size
    with depth (GPT-2, Radford et al. 2019, 2.3). Gains 1, biases 0.
    """
    generator = torch.Generator().manual_seed(seed)
    residual_std = 0.02 / math.sqrt(2 * model.config.n_layers)
    for name, parameter in model.named_parameters():
        if name.endswith("gain"):
            parameter.fill_(1.0)
        elif name.endswith("bias"):
            parameter.zero_()
        else:
            std = residual_std if name.endswith(("w_o.weight", "w_out.weight")) else 0.02
            parameter.copy_(torch.empty(parameter.shape).normal_(0.0, std, generator=generator))


def count_parameters(config: ModelConfig) -> int:
    """The number of parameters, counted on the meta device: exact, and without memory."""
    return sum(p.numel() for p in build(config, device="meta").parameters())
