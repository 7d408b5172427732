"""Mixers: how a token gathers from the others. Attention is the last rung of a ladder of simpler ones."""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.cards.mixers import (
    AttentionCard,
    MeanCard,
    MixerCard,
    NoMixerCard,
    SharedQKCard,
    SimilarityCard,
)
from engine.parts.forward_pass import PassContext
from engine.parts.heads import HeadMixer, output_matrix
from engine.parts.initial import InitialValues
from engine.parts.linear import StackedLinear


class Attention(HeadMixer):
    """Multi-head self-attention (Vaswani et al. 2017), grouped (GQA) or multi-query (MQA) by n_kv_heads.

    `w_qkv` holds W_Q, W_K and W_V, in that order.
    """

    card: ClassVar[type[MixerCard]] = AttentionCard
    initial_values: ClassVar[InitialValues] = {**HeadMixer.initial_values, "w_qkv": "matrix"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        kv_width = self.n_kv_heads * self.d_head
        self.w_qkv = StackedLinear(config.d_model, (width, kv_width, kv_width), bias=config.attention_bias)
        self.w_o = output_matrix(config, width)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        if memory is not None:
            return self._across(x, memory)
        qkv = self.w_qkv(x)  # (batch, query, d_model) -> (batch, query, (head + 2 kv_head) * d_head)
        qkv = qkv.unflatten(-1, (-1, self.d_head))
        q, k, v = qkv.split([self.n_heads, self.n_kv_heads, self.n_kv_heads], dim=2)
        return q, k, v

    def _across(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries from x, keys and values from another text (Vaswani et al. 2017, 3.2.3)."""
        rows = (self.n_heads * self.d_head, 2 * self.n_kv_heads * self.d_head)  # of W_Q; of W_K and W_V
        weights = self.w_qkv.weight.split(rows)
        biases = (None, None) if self.w_qkv.bias is None else self.w_qkv.bias.split(rows)
        q, kv = (
            F.linear(source, weight, bias).unflatten(-1, (-1, self.d_head))
            for source, weight, bias in zip((x, memory), weights, biases, strict=True)
        )
        k, v = kv.split([self.n_kv_heads, self.n_kv_heads], dim=2)
        return q, k, v


class SharedQK(HeadMixer):
    """Attention whose queries and keys are the same vectors: every token scores highest with its own
    likes.
    """

    card: ClassVar[type[MixerCard]] = SharedQKCard
    initial_values: ClassVar[InitialValues] = {
        **HeadMixer.initial_values,
        "w_qk": "matrix",
        "w_v": "matrix",
    }

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        self.w_qk = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_v = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_o = output_matrix(config, width)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        by_head = (self.n_heads, self.d_head)
        q = k = self.w_qk(x).unflatten(-1, by_head)
        if memory is not None:
            k = self.w_qk(memory).unflatten(-1, by_head)
        return q, k, self.w_v(x if memory is None else memory).unflatten(-1, by_head)


class Similarity(HeadMixer):
    """No matrices: tokens score by the raw similarity of their vectors, so each looks mostly at itself."""

    card: ClassVar[type[MixerCard]] = SimilarityCard

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        q = kv = x.unflatten(-1, (self.n_heads, self.d_head))
        if memory is not None:
            kv = memory.unflatten(-1, (self.n_heads, self.d_head))
        return q, kv, kv


class Mean(Similarity):
    """No scores: every token takes the plain average of all it may see. Position schemes that bias scores
    still count.
    """

    card: ClassVar[type[MixerCard]] = MeanCard

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q.new_zeros(q.shape[0], self.n_heads, q.shape[2], k.shape[2])

    def compared(self, q: Tensor, k: Tensor) -> Tensor | None:
        return None


class NoMixer(nn.Module):
    """Tokens never talk: the model predicts from the last token alone."""

    card: ClassVar[type[MixerCard]] = NoMixerCard
    present: ClassVar[bool] = False
    cacheable: ClassVar[bool] = True

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, context: PassContext) -> Tensor | None:
        return None
