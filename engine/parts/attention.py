"""Mixers: how a token gathers from the others. Attention is the last rung of a ladder of simpler ones.

Attention is written out (scores, mask, softmax, weighted sum) rather than fused: the app shows every
stage, and at these sizes on a CPU it is also faster than the fused kernel.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ModelConfig
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


class KVCache:
    """Keys and values of the positions read so far: under a causal mask they never change, so each is
    computed once.

    One pair of tensors for each layer, (batch, kv_head, capacity, d_head); `length` positions of them are
    filled.
    """

    def __init__(self, config: ModelConfig, capacity: int, like: Tensor, batch: int = 1) -> None:
        shape = (
            config.n_layers,
            2,
            batch,
            config.n_kv_heads or config.n_heads,
            capacity,
            config.d_head or config.d_model // config.n_heads,
        )
        self.held = torch.empty(shape, dtype=like.dtype, device=like.device)
        self.length = 0

    @property
    def capacity(self) -> int:
        return self.held.shape[4]

    def layer(self, index: int) -> LayerCache:
        return LayerCache(self.held[index], self.length)


class LayerCache:
    """One layer's part of a KVCache during one forward pass."""

    def __init__(self, held: Tensor, start: int) -> None:
        self.held, self.start = held, start  # (2, batch, kv_head, capacity, d_head)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Stores the new k and v (batch, kv_head, key, d_head); returns those of all positions so far. No
        gradient passes.
        """
        stop = self.start + k.shape[2]
        self.held[0, :, :, self.start : stop] = k.detach()
        self.held[1, :, :, self.start : stop] = v.detach()
        return self.held[0, :, :, :stop], self.held[1, :, :, :stop]


class _Mixer(nn.Module):
    """What all mixers share: heads, scores, mask, softmax, weighted sum. Subclasses say where q, k, v come
    from.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.d_head is not None and config.n_kv_heads is not None
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        self.qk_norm, self.eps, self.dropout = config.qk_norm, config.norm_eps, config.dropout
        self.scale = 1.0 / math.sqrt(
            self.d_head
        )  # keeps the scores' spread near 1 (Vaswani et al. 2017, 3.2.1)

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x (batch, query, d_model) -> q (batch, query, head, d_head) and k, v (batch, key, kv_head,
        d_head).
        """
        raise NotImplementedError

    def output(self, z: Tensor) -> Tensor:
        """The heads side by side (batch, query, head * d_head) -> (batch, query, d_model)."""
        return z

    def forward(
        self, x: Tensor, seams: Seams, mask: Tensor | None, probe: Probe, cache: LayerCache | None = None
    ) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.heads(x)
        q = probe("q", q.transpose(1, 2))  # (batch, query, head, d_head) -> (batch, head, query, d_head)
        k = probe("k", k.transpose(1, 2))
        v = probe("v", v.transpose(1, 2))
        if self.qk_norm:  # without gain; bounds the scores (Henry et al. 2020)
            q, k = (F.rms_norm(t, (self.d_head,), eps=self.eps) for t in (q, k))
        q, k = seams.rotate(q, k)
        q, k = probe("q_rot", q), probe("k_rot", k)
        if cache is not None:  # the keys and values of earlier positions, computed before
            k, v = cache.extend(k, v)
        scores = probe("scores", seams.bias(self.scores(q, k)))  # (batch, head, query, key)
        masked = probe("masked_scores", scores if mask is None else scores + mask)
        pattern = probe("pattern", masked.softmax(dim=-1))  # rows sum to 1: attention has no null answer
        pattern = F.dropout(pattern, self.dropout, self.training)
        z = probe("z", self.weighted_sum(pattern, v))  # (batch, head, query, d_head)
        z = z.transpose(1, 2).reshape(batch, length, self.n_heads * self.d_head)
        return probe("attn_out", F.dropout(self.output(z), self.dropout, self.training))

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


class Attention(_Mixer):
    """Multi-head self-attention (Vaswani et al. 2017), grouped (GQA) or multi-query (MQA) by n_kv_heads.

    `w_qkv` holds W_Q, W_K and W_V, in that order.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        kv_width = self.n_kv_heads * self.d_head
        self.w_qkv = StackedLinear(config.d_model, (width, kv_width, kv_width), bias=config.attention_bias)
        self.w_o = (
            nn.Linear(width, config.d_model, bias=config.attention_bias and config.output_bias)
            if config.output_projection
            else None
        )

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        qkv = self.w_qkv(x)  # (batch, query, d_model) -> (batch, query, (head + 2 kv_head) * d_head)
        qkv = qkv.unflatten(-1, (-1, self.d_head))
        q, k, v = qkv.split([self.n_heads, self.n_kv_heads, self.n_kv_heads], dim=2)
        return q, k, v

    def output(self, z: Tensor) -> Tensor:
        return z if self.w_o is None else self.w_o(z)


class SharedQK(_Mixer):
    """Attention whose queries and keys are the same vectors: every token scores highest with its own
    likes.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        width = self.n_heads * self.d_head
        self.w_qk = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_v = nn.Linear(config.d_model, width, bias=config.attention_bias)
        self.w_o = (
            nn.Linear(width, config.d_model, bias=config.attention_bias and config.output_bias)
            if config.output_projection
            else None
        )

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        shared = self.w_qk(x).unflatten(-1, (self.n_heads, self.d_head))
        return shared, shared, self.w_v(x).unflatten(-1, (self.n_heads, self.d_head))

    def output(self, z: Tensor) -> Tensor:
        return z if self.w_o is None else self.w_o(z)


class Similarity(_Mixer):
    """No matrices: tokens score by the raw similarity of their vectors, so each looks mostly at itself."""

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = x.unflatten(-1, (self.n_heads, self.d_head))
        return x, x, x


class Mean(Similarity):
    """No scores: every token takes the plain average of all it may see. Position schemes that bias scores
    still count.
    """

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q.new_zeros(q.shape[0], self.n_heads, q.shape[2], k.shape[2])


class NoMixer(nn.Module):
    """Tokens never talk: the model predicts from the last token alone."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def forward(
        self, x: Tensor, seams: Seams, mask: Tensor | None, probe: Probe, cache: LayerCache | None = None
    ) -> Tensor | None:
        return None


MIXERS: dict[str, type[nn.Module]] = {
    "none": NoMixer,
    "mean": Mean,
    "similarity": Similarity,
    "shared_qk": SharedQK,
    "attention": Attention,
}
