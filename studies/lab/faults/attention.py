"""Attention gone wrong: each method replaces a healthy one and differs in the faulty lines alone."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.parts.attention import Attention
from engine.parts.blocks import PassContext, PreNormBlock, Sublayers, add
from studies.costs.cards import Formula
from studies.costs.cards.mixers import AttentionCard
from studies.costs.cards.table import CARDS
from studies.lab.faults.fault import ADAMW, fault


class UnscaledAttentionCard(AttentionCard):
    @classmethod
    def score(cls, config: ResolvedConfig) -> Formula:
        return r"\mathrm{scores} = q\,k^\top", "q · kᵀ"


@fault(
    "unscaled_scores",
    "mixers.attention",
    "scores",
    on_model={"n_heads": 1},  # d_k = 64: a spread of 8 before the first step
    on_train=ADAMW | {"init": "normal"},
)
class UnscaledAttention(Attention):
    """Attention whose scores are q·k as they are. Their spread grows with sqrt(d_head), so the softmax is
    sharp from the start and little gradient passes it (Vaswani et al. 2017, 3.2.1).
    """

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        batch, _, length, d_head = q.shape
        # The queries of one group are stacked, so that grouping is a reshape and no key is copied.
        q = q.reshape(batch * self.n_kv_heads, -1, d_head)  # (batch * kv_head, group * query, d_head)
        k = k.reshape(batch * self.n_kv_heads, -1, d_head)  # (batch * kv_head, key, d_head)
        # -> (batch * kv_head, group * query, key)
        scores = torch.baddbmm(q.new_empty(1, 1, 1), q, k.transpose(1, 2), beta=0)
        return scores.view(batch, self.n_heads, length, -1)


CARDS[UnscaledAttention] = UnscaledAttentionCard


class SoftmaxOverQueriesCard(AttentionCard):
    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex = r"A_{ij} = \frac{e^{m_{ij}}}{\sum_{i'} e^{m_{i'j}}}"
        return super().formulas(config) | {"pattern": (latex, "softmax over query")}


@fault("softmax_over_queries", "mixers.attention", "weights")
class SoftmaxOverQueries(Attention):
    """Attention whose softmax runs along the wrong axis: the columns of the pattern sum to 1 and not its
    rows, so that a key is shared out among the queries, those of later tokens among them.
    """

    cacheable: ClassVar[bool] = False

    def weights(self, masked: Tensor, mask: Tensor | None = None) -> Tensor:
        return masked.softmax(dim=-2)


CARDS[SoftmaxOverQueries] = SoftmaxOverQueriesCard


@fault(
    "half_softmax",
    "mixers.attention",
    "weights",
    on_train=ADAMW | {"init": "fan_in"},  # larger first weights: scores pass 11 within some dozen steps
)
class HalfSoftmax(Attention):
    """Attention whose softmax is written out in float16, whose largest number is 65,504: e^x is infinite from
    a score of 11.1 on, and infinite over infinite is no number.
    """

    def weights(self, masked: Tensor, mask: Tensor | None = None) -> Tensor:
        powers = masked.half().exp()
        return (powers / powers.sum(-1, keepdim=True)).to(masked.dtype)


class NoTransposeCard(AttentionCard):
    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        latex = r"(H, T, d_{head}) \to (T, H\,d_{head}) \text{ as the numbers lie}"
        return super().formulas(config) | {"z_merged": (latex, "reshaped as it lies, heads before tokens")}


@fault("no_transpose", "mixers.attention", "merged")
class NoTranspose(Attention):
    """Attention whose heads are reshaped into a token's vector without being brought side by side first: a
    token gets what heads made for other tokens.
    """

    cacheable: ClassVar[bool] = False

    def merged(self, z: Tensor) -> Tensor:
        batch, _, length, _ = z.shape
        return z.reshape(batch, length, self.n_heads * self.d_head)

    def writes(self, z: Tensor) -> Tensor:
        """Returns what each head writes where it lands in the tokens and W_O: z (head, query, d_head)."""
        alone = torch.diag_embed(z.movedim(0, -1)).movedim((-1, -2), (0, 1))  # (head, head, query, d_head)
        merged = self.merged(alone)  # (head, query, head * d_head)
        return merged if self.w_o is None else merged @ self.w_o.weight.to(z.dtype).t()

    def writes_at(self, z: Tensor, position: int) -> Tensor:
        return self.writes(z)[:, position]


CARDS[NoTranspose] = NoTransposeCard


@fault("keys_not_normed", "wirings.pre", "connect")
class KeysNotNormed(PreNormBlock):
    """A block that normalises the queries alone; keys and values are read from the stream as it is."""

    @staticmethod
    def connect(parts: Sublayers, x: Tensor, context: PassContext) -> Tensor:
        probe = context.probe
        x = probe("resid_pre", x)
        normed = probe("norm1", parts.norm1(x))
        x = probe("resid_mid", add(x, parts.mixer(normed, context._replace(memory=x))))
        return probe("resid_post", add(x, parts.ffn(probe("norm2", parts.norm2(x)), probe)))
