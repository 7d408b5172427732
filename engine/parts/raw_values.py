"""Two rungs of the ladder below attention: what is compared has matrices, what is handed on is the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ConfigError
from engine.parts.costs import BatchShape, SavedForBackward
from engine.parts.formula import Formula
from engine.parts.heads import QUERIES, HeadMixer, alike_kept, lies_in_order, output_matrix
from engine.parts.initial import InitialValues
from engine.parts.linear import StackedLinear


class OneMatrix(HeadMixer):
    """Queries and keys are the same vectors, of one matrix; values are the stream's own."""

    title: ClassVar[str] = "Attention, Q = K, no W_V"
    sentence: ClassVar[str] = (
        "One matrix turns the vectors that are compared; what is handed on is as it was."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qk", "k": "qk"}
    initial_values: ClassVar[InitialValues] = {**HeadMixer.initial_values, "w_qk": "matrix"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        check_raw_values(config)
        self.w_qk = nn.Linear(config.d_model, self.n_heads * self.d_head, bias=config.attention_bias)
        self.w_o = output_matrix(config, self.n_heads * self.d_head)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        by_head = (self.n_heads, self.d_head)
        q = k = self.w_qk(x).unflatten(-1, by_head)
        if memory is not None:
            k = self.w_qk(memory).unflatten(-1, by_head)
        return q, k, (x if memory is None else memory).unflatten(-1, by_head)

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (("W_QK", QUERIES),)

    @classmethod
    def vectors_kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        found, itself = alike_kept(config, run)
        return found + SavedForBackward(own=itself * config.d_model) + _values(config, run)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias, plus = (r" + b", " + b") if config.attention_bias else ("", "")
        return super().formulas(config) | {
            "qk_flat": (rf"q = k = x\,W_{{QK}}{bias}", f"x · W_QK{plus}: queries and keys are the same"),
            "qk_heads": (r"(d) \to (H, d_{head})", "split into heads"),
            "x_heads": (r"(d) \to (H, d_{head})", "v is the stream, split into heads"),
        }


class QueriesAndKeys(HeadMixer):
    """Queries and keys have a matrix each; values are the stream's own."""

    title: ClassVar[str] = "Attention, no W_V"
    sentence: ClassVar[str] = (
        "What a token looks for and what it offers are two matrices; what is handed on is as it was."
    )
    learned: ClassVar[bool] = True
    flat: ClassVar[Mapping[str, str]] = {"q": "qk", "k": "qk"}
    initial_values: ClassVar[InitialValues] = {**HeadMixer.initial_values, "w_qk": "matrix"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        check_raw_values(config)
        width = self.n_heads * self.d_head
        self.w_qk = StackedLinear(config.d_model, (width, width), bias=config.attention_bias)
        self.w_o = output_matrix(config, width)

    def heads(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        by_head = (self.n_heads, self.d_head)
        q, k = self.w_qk(x).chunk(2, dim=-1)  # (batch, query, 2 d_model) -> each (batch, query, d_model)
        if memory is not None:
            k = self.w_qk(memory).chunk(2, dim=-1)[1]
        v = x if memory is None else memory
        return q.unflatten(-1, by_head), k.unflatten(-1, by_head), v.unflatten(-1, by_head)

    @classmethod
    def read_by(cls, config: ResolvedConfig) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("W_Q", QUERIES), ("W_K", QUERIES)

    @classmethod
    def vectors_kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        width, spreads = config.n_heads * config.d_head, 2 * config.n_heads
        gained = 2 * width if config.qk_gain else 0
        if config.qk_norm and run.narrow:  # normed in float32, each from a copy
            return SavedForBackward(own=2 * width, full=2 * width + spreads + gained) + _values(config, run)
        if config.qk_norm:  # what is normed, and what comes of it
            return SavedForBackward(own=4 * width + spreads + gained) + _values(config, run)
        return SavedForBackward(own=2 * width) + _values(config, run)

    @classmethod
    def formulas(cls, config: ResolvedConfig) -> dict[str, Formula]:
        bias, plus = (r" + b", " + b") if config.attention_bias else ("", "")
        return super().formulas(config) | {
            "qk_flat": (rf"[q, k] = x\,[W_Q, W_K]{bias}", f"x · [W_Q, W_K]{plus}, one product for both"),
            "qk_heads": (r"(d) \to (H, d_{head})", "split into q, k, and each into heads"),
            "x_heads": (r"(d) \to (H, d_{head})", "v is the stream, split into heads"),
        }


def check_raw_values(config: ResolvedConfig) -> None:
    """Raises ConfigError where the stream cannot be cut into the heads' values as it is."""
    if config.n_kv_heads != config.n_heads:
        allowed = f"must equal n_heads ({config.n_heads}): the values are slices of the stream, one a head"
        raise ConfigError("n_kv_heads", config.n_kv_heads, allowed)
    if config.n_heads * config.d_head != config.d_model:
        wanted = config.d_model // config.n_heads
        allowed = f"must be d_model / n_heads = {wanted}: the values are slices of the stream, one a head"
        raise ConfigError("d_head", config.d_head, allowed)


def _values(config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
    """Of values that are the stream, which the matrices read too: a copy with the heads side by side, where
    it does not lie so already.
    """
    return SavedForBackward(own=config.d_model * (not lies_in_order(config, run)))
