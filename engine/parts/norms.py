"""Normalisation: each token's vector is brought to a standard size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.parameters import InitialValues


@dataclass(frozen=True, eq=False)
class FixedDivisor:
    """A norm at one vector x, with its divisor held constant: u · norm(x) = direction · x + constant for a
    given u.
    """

    direction: Tensor  # (d_model,), in the precision of u
    constant: float
    scale: float  # what the norm divided by


class Norm(Protocol):
    """The interface of a norm. It declares the `initial_values` of its parameters, if it has any."""

    present: ClassVar[bool]  # False: a placeholder for no norm at all
    divides: ClassVar[bool]  # True: x is divided by a number that is measured of it

    def __init__(self, config: ResolvedConfig) -> None: ...

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, query, d_model) -> the same shape."""

    def linear_part(self, x: Tensor) -> Tensor:
        """Applies the norm without its nonlinear step and its bias. Shape in = shape out."""

    def with_fixed_divisor(self, x: Tensor, u: Tensor) -> FixedDivisor | None:
        """Returns the norm at x for a reader u, both (d_model,) float64; None if it is not linear once a
        single divisor is held.
        """


class LayerNorm(nn.Module):
    """g * (x - mean) / sqrt(var + eps) + b over the last axis (Ba et al. 2016). Shape in = shape out."""

    present: ClassVar[bool] = True
    divides: ClassVar[bool] = True
    initial_values: ClassVar[InitialValues] = {"gain": 1.0, "bias": 0.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.gain = nn.Parameter(torch.empty(config.d_model)) if config.norm_gain else None
        self.bias = nn.Parameter(torch.empty(config.d_model)) if config.norm_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.gain, self.bias, self.eps)

    def linear_part(self, x: Tensor) -> Tensor:
        """Subtracts the mean and multiplies by the gain: no division, no bias."""
        return _times_gain(x - x.mean(-1, keepdim=True), self.gain)

    def with_fixed_divisor(self, x: Tensor, u: Tensor) -> FixedDivisor | None:
        scale = ((x - x.mean()).square().mean() + self.eps).sqrt()
        direction = _times_gain(u, self.gain)
        direction = (
            direction - direction.mean()
        )  # centring u is centring x: u · (x - mean x) = (u - mean u) · x
        constant = 0.0 if self.bias is None else float(u @ self.bias.to(u.dtype))
        return FixedDivisor(direction / scale, constant, float(scale))


class RMSNorm(nn.Module):
    """g * x / sqrt(mean(x^2) + eps) over the last axis (Zhang & Sennrich 2019). Shape in = shape out."""

    present: ClassVar[bool] = True
    divides: ClassVar[bool] = True
    initial_values: ClassVar[InitialValues] = {"gain": 1.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.gain = nn.Parameter(torch.empty(config.d_model)) if config.norm_gain else None

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.gain, self.eps)

    def linear_part(self, x: Tensor) -> Tensor:
        """Multiplies by the gain: no division."""
        return _times_gain(x, self.gain)

    def with_fixed_divisor(self, x: Tensor, u: Tensor) -> FixedDivisor | None:
        scale = (x.square().mean() + self.eps).sqrt()
        return FixedDivisor(_times_gain(u, self.gain) / scale, 0.0, float(scale))


class DyT(nn.Module):
    """g * tanh(alpha x) + b, alpha a learned scalar: dynamic tanh (Zhu et al. 2025). Shape in = shape out."""

    present: ClassVar[bool] = True
    divides: ClassVar[bool] = False
    initial_values: ClassVar[InitialValues] = {"alpha": 0.5, "gain": 1.0, "bias": 0.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.empty(1))
        self.gain = nn.Parameter(torch.empty(config.d_model)) if config.norm_gain else None
        self.bias = nn.Parameter(torch.empty(config.d_model)) if config.norm_bias else None

    def forward(self, x: Tensor) -> Tensor:
        y = _times_gain((self.alpha * x).tanh(), self.gain)
        return y if self.bias is None else y + self.bias

    def linear_part(self, x: Tensor) -> Tensor:
        """Multiplies by alpha and the gain: the slope of the tanh at 0."""
        return _times_gain(x * self.alpha.to(x.dtype), self.gain)

    def with_fixed_divisor(self, x: Tensor, u: Tensor) -> FixedDivisor | None:
        return None  # each number is squashed by another factor


class NoNorm(nn.Module):
    """Leaves x as it is."""

    present: ClassVar[bool] = False
    divides: ClassVar[bool] = False

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x

    def linear_part(self, x: Tensor) -> Tensor:
        return x

    def with_fixed_divisor(self, x: Tensor, u: Tensor) -> FixedDivisor | None:
        return FixedDivisor(u, 0.0, 1.0)


def _times_gain(x: Tensor, gain: Tensor | None) -> Tensor:
    return x if gain is None else x * gain.to(x.dtype)
