"""Mixers: how a token gathers from the others. Attention is the last rung of a ladder of simpler ones.

Attention is written out (scores, mask, softmax, weighted sum) rather than fused: the app shows every
stage, and at these sizes on a CPU it is also faster than the fused kernel.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.cache import LayerCache
from engine.parts.linear import StackedLinear
from engine.parts.positions import Seams
from engine.probe import Probe


def causal_mask(length: int, like: Tensor, start: int = 0) -> Tensor:
    """(query, key): 0 where key <= query, -inf above. Added to the scores *before* the softmax. Queries begin
    at position `start`.
    """
    return torch.full((length, start + length), -math.inf, dtype=like.dtype, device=like.device).triu(
        1 + start
    )


class HeadMixer(nn.Module):
    """What all mixers share: heads, scores, mask, softmax, weighted sum. Subclasses say where q, k, v come
    from.

    x is what asks; what answers is `memory`, another text's vectors, or x itself where it is None.
    """

    present: ClassVar[bool] = True

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        self.qk_norm, self.eps, self.dropout = config.qk_norm, config.norm_eps, config.dropout
        self.scale = 1.0 / math.sqrt(
            self.d_head
        )  # keeps the scores' spread near 1 (Vaswani et al. 2017, 3.2.1)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """x (batch, query, d_model) and memory (batch, key, d_model) -> q (batch, query, head, d_head) and
        k, v (batch, key, kv_head, d_head).
        """
        raise NotImplementedError

    def output(self, z: Tensor) -> Tensor:
        """The heads side by side (batch, query, head * d_head) -> (batch, query, d_model)."""
        return z

    def forward(
        self,
        x: Tensor,
        seams: Seams,
        mask: Tensor | None,
        probe: Probe,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
    ) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.heads(x, memory)
        q = probe("q", q.transpose(1, 2))  # (batch, query, head, d_head) -> (batch, head, query, d_head)
        k = probe("k", k.transpose(1, 2))
        v = probe("v", v.transpose(1, 2))
        q, k = seams.rotate(self.normed(q), self.normed(k))
        q, k = probe("q_rot", q), probe("k_rot", k)
        if cache is not None:  # the keys and values of earlier positions, computed before
            k, v = cache.extend(k, v)
        scores = probe("scores", seams.bias(self.scores(q, k)))  # (batch, head, query, key)
        masked = probe("masked_scores", scores if mask is None else scores + mask)
        pattern = probe("pattern", self.weights(masked))
        pattern = F.dropout(pattern, self.dropout, self.training)
        z = probe("z", self.weighted_sum(pattern, v))  # (batch, head, query, d_head)
        z = z.transpose(1, 2).reshape(batch, length, self.n_heads * self.d_head)
        return probe("attn_out", F.dropout(self.output(z), self.dropout, self.training))

    def normed(self, x: Tensor) -> Tensor:
        """Queries or keys (..., d_head) as they meet the rotation: with `qk_norm` of length sqrt(d_head),
        without gain, which bounds the scores (Henry et al. 2020).
        """
        return F.rms_norm(x, (self.d_head,), eps=self.eps) if self.qk_norm else x

    def weights(self, masked: Tensor) -> Tensor:
        """Scores (..., query, key) -> how much of each value is taken. Rows sum to 1: attention has no null
        answer.
        """
        return masked.softmax(dim=-1)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """q k^T / sqrt(d_head). With fewer kv_heads, each key head serves a group of query heads (Ainslie et
        al. 2023).
        """
        batch, _, length, d_head = q.shape
        # The queries of one group are stacked, so that grouping is a reshape and no key is copied.
        q = q.reshape(batch * self.n_kv_heads, -1, d_head)
        k = k.reshape(batch * self.n_kv_heads, -1, d_head)
        scores = torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=self.scale)
        return scores.view(batch, self.n_heads, length, -1)

    def weighted_sum(self, pattern: Tensor, v: Tensor) -> Tensor:
        """pattern v: (batch, head, query, key) x (batch, kv_head, key, d_head) -> (batch, head, query,
        d_head).
        """
        batch, _, length, keys = pattern.shape
        pattern = pattern.reshape(batch * self.n_kv_heads, -1, keys)
        v = v.reshape(batch * self.n_kv_heads, keys, self.d_head)
        return torch.bmm(pattern, v).view(batch, self.n_heads, length, self.d_head)


class Attention(HeadMixer):
    """Multi-head self-attention (Vaswani et al. 2017), grouped (GQA) or multi-query (MQA) by n_kv_heads.

    `w_qkv` holds W_Q, W_K and W_V, in that order.
    """

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        kv_width = self.n_kv_heads * self.d_head
        self.w_qkv = StackedLinear(config.d_model, (width, kv_width, kv_width), bias=config.attention_bias)
        self.w_o = (
            nn.Linear(width, config.d_model, bias=config.attention_bias and config.output_bias)
            if config.output_projection
            else None
        )

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        if memory is not None:
            return self._across(x, memory)
        qkv = self.w_qkv(x)  # (batch, query, d_model) -> (batch, query, (head + 2 kv_head) * d_head)
        qkv = qkv.unflatten(-1, (-1, self.d_head))
        q, k, v = qkv.split([self.n_heads, self.n_kv_heads, self.n_kv_heads], dim=2)
        return q, k, v

    def _across(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries from x, keys and values from another text (Vaswani et al. 2017, 3.2.3)."""
        weights = self.w_qkv.weight.split(self.w_qkv.row_blocks)
        biases = (None,) * 3 if self.w_qkv.bias is None else self.w_qkv.bias.split(self.w_qkv.row_blocks)
        q, k, v = (
            F.linear(source, weight, bias).unflatten(-1, (-1, self.d_head))
            for source, weight, bias in zip((x, memory, memory), weights, biases, strict=True)
        )
        return q, k, v

    def output(self, z: Tensor) -> Tensor:
        return z if self.w_o is None else self.w_o(z)


class SharedQK(HeadMixer):
    """Attention whose queries and keys are the same vectors: every token scores highest with its own
    likes.
    """

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        self.w_qk = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_v = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_o = (
            nn.Linear(width, config.d_model, bias=config.attention_bias and config.output_bias)
            if config.output_projection
            else None
        )

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        by_head = (self.n_heads, self.d_head)
        q = k = self.w_qk(x).unflatten(-1, by_head)
        if memory is not None:
            k = self.w_qk(memory).unflatten(-1, by_head)
        return q, k, self.w_v(x if memory is None else memory).unflatten(-1, by_head)

    def output(self, z: Tensor) -> Tensor:
        return z if self.w_o is None else self.w_o(z)


class Similarity(HeadMixer):
    """No matrices: tokens score by the raw similarity of their vectors, so each looks mostly at itself."""

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        q = kv = x.unflatten(-1, (self.n_heads, self.d_head))
        if memory is not None:
            kv = memory.unflatten(-1, (self.n_heads, self.d_head))
        return q, kv, kv


class Mean(Similarity):
    """No scores: every token takes the plain average of all it may see. Position schemes that bias scores
    still count.
    """

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q.new_zeros(q.shape[0], self.n_heads, q.shape[2], k.shape[2])


class NoMixer(nn.Module):
    """Tokens never talk: the model predicts from the last token alone."""

    present: ClassVar[bool] = False

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(
        self,
        x: Tensor,
        seams: Seams,
        mask: Tensor | None,
        probe: Probe,
        cache: LayerCache | None = None,
        memory: Tensor | None = None,
    ) -> Tensor | None:
        return None
