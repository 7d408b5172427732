"""Normalisation: each token's vector is brought to a standard size before a sublayer reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.parts.costs import BatchShape, SavedForBackward, Weight
from engine.parts.formula import Formula
from engine.parts.initial import InitialValues


@dataclass(frozen=True, eq=False)
class Linearised:
    """A norm at one vector x, with its division held at the value it has there:
    u · norm(x) = direction · x + constant for the reader u that was given.
    """

    direction: Tensor  # (d_model,), in the precision of u
    constant: float
    scale: float  # what the norm divided by


class LayerNorm(nn.Module):
    """g * (x - mean) / sqrt(var + eps) + b over the last axis (Ba et al. 2016). Shape in = shape out."""

    present: ClassVar[bool] = True
    title: ClassVar[str] = "LayerNorm"
    sentence: ClassVar[str] = "Each token's vector is shifted to mean 0 and scaled to spread 1."
    initial_values: ClassVar[InitialValues] = {"gain": 1.0, "bias": 0.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.gain = nn.Parameter(torch.empty(config.d_model)) if config.norm_gain else None
        self.bias = nn.Parameter(torch.empty(config.d_model)) if config.norm_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.gain, self.bias, self.eps)

    def linear(self, x: Tensor) -> Tensor:
        """Without the division and the bias: the mean is taken off, and the gain multiplies."""
        return _gained(x - x.mean(-1, keepdim=True), self.gain)

    @classmethod
    def linear_words(cls, config: ResolvedConfig) -> str:
        return "centred" + (" and multiplied by its gain" if config.norm_gain else "")

    def linearised(self, x: Tensor, u: Tensor) -> Linearised | None:
        scale = ((x - x.mean()).square().mean() + self.eps).sqrt()
        direction = _gained(u, self.gain)
        direction = direction - direction.mean()  # off the reader is off what is read
        constant = 0.0 if self.bias is None else float(u @ self.bias.to(u.dtype))
        return Linearised(direction / scale, constant, float(scale))

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return _gain(config) + ((Weight("bias b", ("d_model",)),) if config.norm_bias else ())

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward(read=config.d_model, own=2)  # x, its mean and its spread

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        gain, by = (r"g \odot ", "g · ") if config.norm_gain else ("", "")
        bias, plus = (" + b", " + b") if config.norm_bias else ("", "")
        latex = rf"{gain}\frac{{x - \mu}}{{\sqrt{{\sigma^2 + \epsilon}}}}{bias}"
        return latex, f"{by}(x − mean) / spread{plus}"


class RMSNorm(nn.Module):
    """g * x / sqrt(mean(x^2) + eps) over the last axis (Zhang & Sennrich 2019). Shape in = shape out."""

    present: ClassVar[bool] = True
    title: ClassVar[str] = "RMSNorm"
    sentence: ClassVar[str] = "Each token's vector is scaled to root-mean-square 1."
    initial_values: ClassVar[InitialValues] = {"gain": 1.0}

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()
        self.eps = config.norm_eps
        self.gain = nn.Parameter(torch.empty(config.d_model)) if config.norm_gain else None

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.gain, self.eps)

    def linear(self, x: Tensor) -> Tensor:
        """Without the division: the gain multiplies."""
        return _gained(x, self.gain)

    @classmethod
    def linear_words(cls, config: ResolvedConfig) -> str:
        return "multiplied by its gain" if config.norm_gain else ""

    def linearised(self, x: Tensor, u: Tensor) -> Linearised | None:
        scale = (x.square().mean() + self.eps).sqrt()
        return Linearised(_gained(u, self.gain) / scale, 0.0, float(scale))

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return _gain(config)

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        gained = config.d_model if config.norm_gain else 0  # what the gain multiplies
        if run.narrow:  # torch computes it in float32, from a copy of x
            return SavedForBackward(full=config.d_model + 1 + gained)
        return SavedForBackward(read=config.d_model, own=1 + gained)

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        gain, by = (r"g \odot ", "g · ") if config.norm_gain else ("", "")
        return rf"{gain}\frac{{x}}{{\sqrt{{\overline{{x^2}} + \epsilon}}}}", f"{by}x / rms(x)"


class NoNorm(nn.Module):
    """Leaves x as it is."""

    present: ClassVar[bool] = False
    title: ClassVar[str] = "No norm"
    sentence: ClassVar[str] = "Each token's vector stays as it is."

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x

    def linear(self, x: Tensor) -> Tensor:
        return x

    @classmethod
    def linear_words(cls, config: ResolvedConfig) -> str:
        return ""

    def linearised(self, x: Tensor, u: Tensor) -> Linearised | None:
        return Linearised(u, 0.0, 1.0)

    @classmethod
    def tensors(cls, config: ResolvedConfig) -> tuple[Weight, ...]:
        return ()

    @classmethod
    def kept(cls, config: ResolvedConfig, run: BatchShape) -> SavedForBackward:
        return SavedForBackward()

    @classmethod
    def formula(cls, config: ResolvedConfig) -> Formula:
        return "x", "x"


def _gain(config: ResolvedConfig) -> tuple[Weight, ...]:
    return (Weight("gain g", ("d_model",)),) if config.norm_gain else ()


def _gained(x: Tensor, gain: Tensor | None) -> Tensor:
    return x if gain is None else x * gain.to(x.dtype)
