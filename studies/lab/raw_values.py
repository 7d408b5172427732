"""Two rungs of the ladder below attention: what is compared has matrices, what is handed on is the stream."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ConfigError
from engine.parts.attention import HeadMixer, output_matrix
from engine.parts.parameters import InitialValues, StackedLinear
from studies.costs.cards.mixers import QueriesAndKeysCard, SharedQKRawValuesCard
from studies.costs.cards.table import CARDS


class SharedQKRawValues(HeadMixer):
    """Queries and keys are the same vectors, of one matrix; values are the stream's own."""

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


CARDS[SharedQKRawValues] = SharedQKRawValuesCard


class QueriesAndKeys(HeadMixer):
    """Queries and keys have a matrix each; values are the stream's own."""

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


CARDS[QueriesAndKeys] = QueriesAndKeysCard


def check_raw_values(config: ResolvedConfig) -> None:
    """Raises ConfigError where the stream cannot be cut into the heads' values as it is."""
    if config.n_kv_heads != config.n_heads:
        allowed = f"must equal n_heads ({config.n_heads}): the values are slices of the stream, one a head"
        raise ConfigError("n_kv_heads", config.n_kv_heads, allowed)
    if config.n_heads * config.d_head != config.d_model:
        wanted = config.d_model // config.n_heads
        allowed = f"must be d_model / n_heads = {wanted}: the values are slices of the stream, one a head"
        raise ConfigError("d_head", config.d_head, allowed)
