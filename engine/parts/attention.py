"""Mixers: how a token gathers from the others. Attention is the last rung of a ladder of simpler ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.costs import BatchShape, Product, SavedForBackward, Weight
from engine.parts.formula import Formula
from engine.parts.forward_pass import PassContext
from engine.parts.heads import KEYS, QUERIES, HeadMixer, alike_kept, lies_in_order, output_matrix
from engine.parts.initial import InitialValues
from engine.parts.linear import StackedLinear


class Attention(HeadMixer):
    """Multi-head self-attention (Vaswani et al. 2017), grouped (GQA) or multi-query (MQA) by n_kv_heads.

    `w_qkv` holds W_Q, W_K and W_V, in that order.
    """

    title: ClassVar[str] = "Attention"
    sentence: ClassVar[str] = (
        "Tokens talk. A query is compared with the keys; the softmax of the scores says how much of each"
        " value is taken."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qkv", "k": "qkv", "v": "qkv"}
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

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("W_Q", QUERIES), ("W_K", KEYS), ("W_V", KEYS)

    @classmethod
    def vectors_kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        q, kv = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
        lies = lies_in_order(config, run)
        whole = q + 2 * kv  # W_QKV gives all three as one tensor: a view of one holds it all
        gained = q + kv if config.qk_gain else 0  # what the gains multiply
        if config.qk_norm and run.narrow:  # normed in float32, from copies of q and k
            heads = config.n_heads + config.n_kv_heads
            return SavedForBackward(own=q + kv + (whole if lies else kv), full=q + kv + heads + gained)
        if config.qk_norm:
            heads = config.n_heads + config.n_kv_heads
            return SavedForBackward(own=q + kv + (0 if lies else kv) + whole + heads + gained)
        if run.turned:
            return SavedForBackward(own=q + kv + (whole if lies else kv))
        copied = 0 if lies and config.n_kv_heads == config.n_heads else q  # a group's queries are stacked
        return SavedForBackward(own=copied + (whole if lies else 2 * kv))

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias, plus = (r" + b", " + b") if config.attention_bias else ("", "")
        return super().formulas(config) | {
            "qkv_flat": (
                rf"[q, k, v] = x\,[W_Q, W_K, W_V]{bias}",
                f"x · [W_Q, W_K, W_V]{plus}, one product for all three",
            ),
            "qkv_heads": (r"(d) \to (H, d_{head})", "split into q, k, v, and each into heads"),
        }


class SharedQK(HeadMixer):
    """Attention whose queries and keys are the same vectors: every token scores highest with its own
    likes.
    """

    title: ClassVar[str] = "Attention, Q = K"
    sentence: ClassVar[str] = (
        "One matrix makes both queries and keys, so a token scores highest with its own likes."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qk", "k": "v", "v": "v"}
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

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("W_QK", QUERIES), ("W_V", QUERIES)

    @classmethod
    def vectors_kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        found, itself = alike_kept(config, run)
        return found + SavedForBackward(
            own=(1 + itself) * config.n_heads * config.d_head
        )  # v, and what q and k are

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias, plus = (r" + b", " + b") if config.attention_bias else ("", "")
        cut = (r"(d) \to (H, d_{head})", "split into heads")
        return super().formulas(config) | {
            "qk_flat": (
                rf"q = k = x\,W_{{QK}}{bias}",
                f"x · W_QK{plus}: queries and keys are the same",
            ),
            "qk_heads": cut,
            "v_flat": (rf"v = x\,W_V{bias}", f"x · W_V{plus}"),
            "v_heads": cut,
        }


class Similarity(HeadMixer):
    """No matrices: tokens score by the raw similarity of their vectors, so each looks mostly at itself."""

    title: ClassVar[str] = "Similarity"
    sentence: ClassVar[str] = (
        "Tokens are weighed by how alike their vectors are. With no matrices between, each mostly finds"
        " itself."
    )

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        q = kv = x.unflatten(-1, (self.n_heads, self.d_head))
        if memory is not None:
            kv = memory.unflatten(-1, (self.n_heads, self.d_head))
        return q, kv, kv

    @classmethod
    def vectors_kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        found, itself = alike_kept(config, run)
        lies = lies_in_order(config, run)  # then v is x as it is
        return found + SavedForBackward(
            read=config.d_model * (itself or lies), own=config.d_model * (not lies)
        )

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        cut = (r"(d) \to (H, d_{head})", "split into heads; there are no matrices")
        return super().formulas(config) | {"x_heads": cut}


class Mean(Similarity):
    """No scores: every token takes the plain average of all it may see. Position schemes that bias scores
    still count.
    """

    title: ClassVar[str] = "Average"
    sentence: ClassVar[str] = (
        "Every token takes the plain average of all it may see: nobody is listened to more than anybody else."
    )
    scored: ClassVar[bool] = False

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return q.new_zeros(q.shape[0], self.n_heads, q.shape[2], k.shape[2])

    def compared(self, q: Tensor, k: Tensor) -> Tensor | None:
        return None

    @classmethod
    def score(cls, config: ResolvedConfig) -> Formula:
        return r"\mathrm{scores} = 0", "all alike"


class NoMixer(nn.Module):
    """Tokens never talk: the model predicts from the last token alone."""

    present: ClassVar[bool] = False
    title: ClassVar[str] = "No mixer"
    sentence: ClassVar[str] = "Tokens never talk."
    scored: ClassVar[bool] = False
    learned: ClassVar[bool] = False
    cacheable: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, context: PassContext) -> Tensor | None:
        return None

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return ()

    @classmethod
    def products(cls, config: ResolvedConfig) -> tuple[Product, ...]:
        return ()

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward()

    @classmethod
    def cached(cls, config: ResolvedConfig) -> int:
        return 0

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        return {}
