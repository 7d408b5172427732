"""Every norm on a few numbers, with its steps; and where the published models put theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from engine.config import ModelConfig
from engine.parts.norms import Norm
from engine.parts.parameters import set_constants
from engine.parts.registry import NORMS
from studies.costs.presets import PRESETS
from studies.costs.published_models import ENCODER_DECODERS

EXAMPLE = (1.0, 2.0, 3.0, 6.0)


@dataclass(frozen=True, eq=False)
class NormExample:
    """A vector `x` (d,), its statistics, and the `outputs` (d,) of each norm, without gain and bias."""

    x: np.ndarray
    mean: float
    variance: float
    rms: float
    outputs: dict[str, np.ndarray]


def norm_example(x: tuple[float, ...]) -> NormExample:
    """Computes every norm of x with the engine's own parts."""
    row = torch.tensor(x, dtype=torch.float64)
    variance, rms = float(row.var(unbiased=False)), float(row.square().mean().sqrt())
    outputs = {name: _output(norm, row) for name, norm in NORMS.items() if norm.present}
    return NormExample(row.numpy(), float(row.mean()), variance, rms, outputs)


@torch.no_grad()
def _output(part: type[Norm], row: torch.Tensor) -> np.ndarray:
    norm = part(ModelConfig(d_model=len(row), n_heads=1, norm_gain=False, norm_bias=False).resolved())
    set_constants(norm)
    return norm(row).numpy()


@dataclass(frozen=True)
class Habit:
    """A way to place a norm, and the published models of the app that have it."""

    wiring: str
    norm: str
    models: tuple[str, ...]


def habits() -> tuple[Habit, ...]:
    """Returns (wiring, norm) -> published models, in the order of the presets."""
    groups: dict[tuple[str, str], list[str]] = {}
    for preset in (PRESETS | ENCODER_DECODERS).values():
        if preset.trainable:
            continue
        name = preset.title.removesuffix(" (published)")
        groups.setdefault((preset.model.wiring, preset.model.norm), []).append(name)
    return tuple(Habit(wiring, norm, tuple(names)) for (wiring, norm), names in groups.items())
