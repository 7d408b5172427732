"""LayerNorm and RMSNorm on a few numbers, with every step; and who puts a norm where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from engine.config import ModelConfig, Norm
from engine.parts.registry import HEALTHY
from engine.presets import ENCODER_DECODERS, PRESETS

EXAMPLE = (1.0, 2.0, 3.0, 6.0)


@dataclass(frozen=True, eq=False)
class Normed:
    """`x` (d,), its mean, the variance around it, the root of its mean square, and what the two norms make of
    it, without a gain: both (d,).
    """

    x: np.ndarray
    mean: float
    variance: float
    rms: float
    layernorm: np.ndarray
    rmsnorm: np.ndarray


def normed(x: tuple[float, ...]) -> Normed:
    """By the parts of the engine: LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019)."""
    row = torch.tensor(x, dtype=torch.float64)
    variance, rms = float(row.var(unbiased=False)), float(row.square().mean().sqrt())
    return Normed(row.numpy(), float(row.mean()), variance, rms, _by("layernorm", row), _by("rmsnorm", row))


def _by(norm: Norm, row: torch.Tensor) -> np.ndarray:
    config = ModelConfig(d_model=len(row), n_heads=1, norm=norm, norm_gain=False, norm_bias=False).resolved()
    with torch.no_grad():
        found: np.ndarray = HEALTHY.norm(config)(config)(row).numpy()
    return found


@dataclass(frozen=True)
class Habit:
    """A way to place a norm, and the published models of the app that have it."""

    wiring: str
    norm: str
    models: tuple[str, ...]


def habits() -> tuple[Habit, ...]:
    """(wiring, norm) -> who: of every published model, in the order of the presets."""
    groups: dict[tuple[str, str], list[str]] = {}
    for preset in (PRESETS | ENCODER_DECODERS).values():
        if preset.trainable:
            continue
        name = preset.title.removesuffix(" (published)")
        groups.setdefault((preset.model.wiring, preset.model.norm), []).append(name)
    return tuple(Habit(wiring, norm, tuple(names)) for (wiring, norm), names in groups.items())
