"""Activation functions as curves: their values, their slopes, and where a model's own inputs fall."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import ModelConfig
from engine.parts.feedforward import gelu_tanh, relu2
from engine.parts.registry import HEALTHY, Parts
from studies.costs.cards.table import card_of

Written = tuple[str, Callable[[Tensor], Tensor]]  # as it is written, the engine's own function
ACTIVATIONS: dict[str, Written] = {
    "relu": ("ReLU", F.relu),
    "relu2": ("squared ReLU", relu2),
    "gelu": ("GELU", F.gelu),
    "gelu_tanh": ("GELU tanh", gelu_tanh),
    "silu": ("SiLU", F.silu),
}


def written(name: str) -> str:
    """Returns how a function is written; its name where nothing else is known."""
    return ACTIVATIONS[name][0] if name in ACTIVATIONS else name


def activation_name(config: ModelConfig, parts: Parts = HEALTHY) -> str | None:
    """Returns the name of the activation function of a model's feed-forward networks, None without one."""
    return parts.feedforward(config.resolved()).act or None


def functions(config: ModelConfig, parts: Parts = HEALTHY) -> dict[str, Written]:
    """Returns ACTIVATIONS with the function of the model's own part."""
    own = activation_name(config, parts)
    if own is None:
        return dict(ACTIVATIONS)
    return {**ACTIVATIONS, own: (written(own), parts.feedforward(config.resolved()).activation)}


@dataclass(frozen=True, eq=False)
class Curve:
    """A function y = f(x) and its slope dy/dx: all (points,), float64."""

    name: str
    written: str
    x: np.ndarray
    y: np.ndarray
    slope: np.ndarray


def curve(
    name: str,
    low: float = -4.0,
    high: float = 4.0,
    points: int = 401,
    among: Mapping[str, Written] = ACTIVATIONS,
) -> Curve:
    """Draws an activation function of `among` between `low` and `high`; the slope comes from autograd. At a
    corner (ReLU at 0) it is the slope that training uses. Raises KeyError for another name.
    """
    x = torch.linspace(low, high, points, dtype=torch.float64, requires_grad=True)
    title, function = among[name]
    y = function(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    return Curve(name, title, x.detach().numpy(), y.detach().numpy(), slope.numpy())


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference tanh GELU minus exact GELU at x, (points,); `worst` in size, at ±`where`."""

    x: np.ndarray
    y: np.ndarray
    worst: float
    where: float


def worst_difference() -> Difference:
    """Measures how far the two GELUs are apart between -6 and 6 (Hendrycks & Gimpel 2016)."""
    inputs = torch.linspace(-6, 6, 24_001, dtype=torch.float64)
    x, y = inputs.numpy(), (gelu_tanh(inputs) - F.gelu(inputs)).numpy()
    at = int(np.abs(y).argmax())
    return Difference(x, y, float(abs(y[at])), float(abs(x[at])))


def some_pairs(gates: np.ndarray, values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws (gates, values) of at most `count` positions; the same ones each time."""
    gates, values = gates.ravel(), values.ravel()
    some = np.random.default_rng(0).choice(gates.size, min(count, gates.size), replace=False)
    return gates[some], values[some]


def gates(parts: Parts = HEALTHY) -> dict[str, str]:
    """Returns every kind of network with a gate: name -> title."""
    return {name: card_of(part).title for name, part in parts.feedforwards.items() if part.gated and part.act}


def gated_surface(
    ffn: str, reach: float = 4.0, points: int = 81, parts: Parts = HEALTHY
) -> tuple[np.ndarray, np.ndarray]:
    """Returns axis (points,) and act(gate) * value (value, gate) of a gated neuron (Shazeer 2020)."""
    axis = torch.linspace(-reach, reach, points, dtype=torch.float64)
    return axis.numpy(), (parts.feedforwards[ffn].activation(axis)[None, :] * axis[:, None]).float().numpy()


@dataclass(frozen=True, eq=False)
class Inputs:
    """The distribution of inputs to an activation function: density (bins,) over edges (bins + 1,)."""

    edges: np.ndarray
    density: np.ndarray  # per unit of x; sums to 1 - outside
    outside: float  # share in [0, 1] beyond the edges
    negative: float  # share below 0
    mean: float
    std: float


def spread(values: np.ndarray, low: float = -4.0, high: float = 4.0, bins: int = 80) -> Inputs:
    """Counts values of any shape. Raises ValueError for none."""
    flat = np.asarray(values, dtype=np.float64).ravel()
    if not flat.size:
        raise ValueError("there are no values to count")
    counts, edges = np.histogram(flat, bins, (low, high))
    outside = 1 - counts.sum() / flat.size
    return Inputs(
        edges,
        counts / flat.size / np.diff(edges),
        float(outside),
        float((flat < 0).mean()),
        float(flat.mean()),
        float(flat.std()),
    )


def bent_input(config: ModelConfig, parts: Parts = HEALTHY) -> str:
    """Returns the activation that goes through the function: the gate's where there is one."""
    return "ffn_gate" if parts.feedforward(config.resolved()).gated else "ffn_pre"
