"""The feed-forward network, applied to each position separately. It has 2/3 of a block's parameters where
d_ff = 4 d_model and every head has keys and values of its own.
"""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ShapeError
from engine.parts.parameters import InitialValues, StackedLinear
from engine.probe import Probe


def relu2(x: Tensor) -> Tensor:
    """Returns max(0, x)^2 (So et al. 2021): as cheap as ReLU, and learns faster here."""
    return F.relu(x).square()


def gelu_tanh(x: Tensor) -> Tensor:
    """Returns GPT-2's tanh approximation of GELU (Hendrycks & Gimpel 2016)."""
    return F.gelu(x, approximate="tanh")


class FeedForward(nn.Module):
    """W2 act(W1 x): (batch, query, d_model) -> (batch, query, d_ff) -> (batch, query, d_model)."""

    present: ClassVar[bool] = True
    gated: ClassVar[bool] = False  # one half of the widened vector decides how much of the other passes
    exact_zeros: ClassVar[bool] = False  # many activations are exactly 0
    # The name of `activation`, for figures
    act: ClassVar[str] = ""
    initial_values: ClassVar[InitialValues] = {"w_in": "matrix", "w_out": "to_stream"}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.w_in = nn.Linear(config.d_model, config.d_ff, bias=config.ffn_bias)
        self.w_out = nn.Linear(config.d_ff, config.d_model, bias=config.ffn_bias)

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        """Applies the nonlinearity to each number, of the gate if there is one; subclasses differ here."""
        raise NotImplementedError

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        """Maps x (batch, query, d_model) to what is written to the stream, of the same shape."""
        pre = probe("ffn_pre", self.w_in(x))  # (batch, query, d_model) -> (batch, query, d_ff)
        post = probe("ffn_post", self.activation(pre))
        # (batch, query, d_ff) -> (batch, query, d_model)
        return probe("ffn_out", F.dropout(self.w_out(post), self.dropout, self.training))

    def column(self, neuron: int) -> Tensor:
        """Returns what a neuron adds to the stream where its `ffn_post` is 1, (d_model,): a column of W2."""
        return self.w_out.weight[:, neuron]


class GatedFeedForward(FeedForward):
    """W2 (act(G x) * W1 x): one half decides how much of the other passes (Shazeer 2020).

    `w_in` holds G and W1, in that order.
    """

    gated: ClassVar[bool] = True

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.w_in = StackedLinear(config.d_model, (config.d_ff, config.d_ff), bias=config.ffn_bias)

    def combined(self, gate: Tensor, pre: Tensor) -> Tensor:
        """Returns what a gate and a value (..., d_ff) make together, of the same shape."""
        return self.activation(gate) * pre

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        gate, pre = self.w_in(x).chunk(2, dim=-1)  # (batch, query, 2 d_ff) -> each (batch, query, d_ff)
        pre, gate = probe("ffn_pre", pre), probe("ffn_gate", gate)
        post = probe("ffn_post", self.combined(gate, pre))
        # (batch, query, d_ff) -> (batch, query, d_model)
        return probe("ffn_out", F.dropout(self.w_out(post), self.dropout, self.training))


class NoFeedForward(FeedForward):
    """No feed-forward network: attention only."""

    present: ClassVar[bool] = False

    def __init__(self, config: ResolvedConfig) -> None:
        nn.Module.__init__(self)  # no matrices

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        raise ShapeError("this model has no feed-forward networks, so it has no activation function")

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        return None

    def column(self, neuron: int) -> Tensor:
        raise ShapeError("this model has no feed-forward networks, so it has no neurons")


class Relu(FeedForward):
    """max(0, x) (Nair & Hinton 2010)."""

    act: ClassVar[str] = "relu"
    exact_zeros: ClassVar[bool] = True

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.relu(x)


class SquaredRelu(FeedForward):
    """max(0, x)^2 (So et al. 2021)."""

    act: ClassVar[str] = "relu2"
    exact_zeros: ClassVar[bool] = True

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return relu2(x)


class Gelu(FeedForward):
    """x Φ(x) (Hendrycks & Gimpel 2016)."""

    act: ClassVar[str] = "gelu"

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.gelu(x)


class GeluTanh(FeedForward):
    """x Φ(x) in GPT-2's approximation."""

    act: ClassVar[str] = "gelu_tanh"

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return gelu_tanh(x)


class SwiGlu(GatedFeedForward):
    """SiLU on the gate (Shazeer 2020)."""

    act: ClassVar[str] = "silu"

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.silu(x)


class ClampedSwiGlu(GatedFeedForward):
    """x σ(1.702 x) on a gate of at most 7, times 1 more than a value cut off at ±7 (gpt-oss, OpenAI 2025)."""

    act: ClassVar[str] = "swish"

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        x = x.clamp(max=7.0)
        return x * F.sigmoid(1.702 * x)

    def combined(self, gate: Tensor, pre: Tensor) -> Tensor:
        return self.activation(gate) * (pre.clamp(-7.0, 7.0) + 1)


class GeGlu(GatedFeedForward):
    """GELU on the gate (Shazeer 2020)."""

    act: ClassVar[str] = "gelu"

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return F.gelu(x)


class GeGluTanh(GatedFeedForward):
    """GELU on the gate, in GPT-2's approximation (Gemma, T5 1.1)."""

    act: ClassVar[str] = "gelu_tanh"

    @staticmethod
    def activation(x: Tensor) -> Tensor:
        return gelu_tanh(x)
