"""Normalisation: each token's vector is brought to a standard size before a sublayer reads it."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig


class LayerNorm(nn.Module):
    """g * (x - mean) / sqrt(var + eps) + b over the last axis (Ba et al. 2016). Shape in = shape out."""

    present: ClassVar[bool] = True

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.gain = nn.Parameter(torch.empty(config.d_model)) if config.norm_gain else None
        self.bias = nn.Parameter(torch.empty(config.d_model)) if config.norm_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.gain, self.bias, self.eps)


class RMSNorm(nn.Module):
    """g * x / sqrt(mean(x^2) + eps) over the last axis (Zhang & Sennrich 2019). Shape in = shape out."""

    present: ClassVar[bool] = True

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.gain = nn.Parameter(torch.empty(config.d_model)) if config.norm_gain else None

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.gain, self.eps)


class NoNorm(nn.Module):
    """Leaves x as it is."""

    present: ClassVar[bool] = False

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x
