"""The feed-forward network: after the tokens have talked, each thinks alone. About 2/3 of a block's
parameters.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ModelConfig
from engine.parts.linear import StackedLinear
from engine.probe import Probe


def relu2(x: Tensor) -> Tensor:
    """max(0, x)^2 (So et al. 2021): as cheap as ReLU, and learns faster here."""
    return F.relu(x).square()


def gelu_tanh(x: Tensor) -> Tensor:
    """GPT-2's tanh approximation of GELU (Hendrycks & Gimpel 2016)."""
    return F.gelu(x, approximate="tanh")


class FeedForward(nn.Module):
    """W2 act(W1 x): (batch, query, d_model) -> (batch, query, d_ff) -> (batch, query, d_model)."""

    def __init__(self, config: ModelConfig, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        assert config.d_ff is not None
        self.activation, self.dropout = activation, config.dropout
        self.w_in = nn.Linear(config.d_model, config.d_ff, bias=config.ffn_bias)
        self.w_out = nn.Linear(config.d_ff, config.d_model, bias=config.ffn_bias)

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        pre = probe("ffn_pre", self.w_in(x))  # (batch, query, d_ff)
        post = probe("ffn_post", self.activation(pre))
        return probe("ffn_out", F.dropout(self.w_out(post), self.dropout, self.training))


class GatedFeedForward(nn.Module):
    """W2 (act(G x) * W1 x): one half decides how much of the other passes (Shazeer 2020).

    `w_in` holds G and W1, in that order.
    """

    def __init__(self, config: ModelConfig, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        assert config.d_ff is not None
        self.activation, self.dropout = activation, config.dropout
        self.w_in = StackedLinear(config.d_model, (config.d_ff, config.d_ff), bias=config.ffn_bias)
        self.w_out = nn.Linear(config.d_ff, config.d_model, bias=config.ffn_bias)

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        gate, pre = self.w_in(x).chunk(2, dim=-1)  # each (batch, query, d_ff)
        pre, gate = probe("ffn_pre", pre), probe("ffn_gate", gate)
        post = probe("ffn_post", self.activation(gate) * pre)
        return probe("ffn_out", F.dropout(self.w_out(post), self.dropout, self.training))


class NoFeedForward(nn.Module):
    """No feed-forward network: attention only."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor, probe: Probe) -> Tensor | None:
        return None


FEEDFORWARDS: dict[str, Callable[[ModelConfig], nn.Module]] = {
    "relu": lambda config: FeedForward(config, F.relu),
    "relu2": lambda config: FeedForward(config, relu2),
    "gelu": lambda config: FeedForward(config, F.gelu),
    "gelu_tanh": lambda config: FeedForward(config, gelu_tanh),
    "swiglu": lambda config: GatedFeedForward(config, F.silu),
    "geglu": lambda config: GatedFeedForward(config, F.gelu),
    "none": NoFeedForward,
}
