"""The influence of a token by its distance, through one untrained layer: recurrent layers against attention.

Influence is the length of the gradient of the last output (along random directions) with respect to the input
there (Bengio et al. 1994). A recurrent layer multiplies by a matrix at each step, so it falls by a factor a
position; attention reads each position in one step. Costs: Table 1 of Vaswani et al. 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch
from torch import nn

from engine.model import materialise

Layer = Literal["rnn", "lstm", "attention"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
SEEDS = 4  # layers and texts over which a mean is taken
HEADS = 4
FORGET = 1.0  # the forget gate's bias: Jozefowicz et al. 2015, section 2.2


@dataclass(frozen=True, eq=False)
class LayerInfluence:
    """One kind of layer over `length` positions of `width` numbers. `influence` (distance,): of the token 1,
    2 ... `length` - 1 positions back on the last output, as a share of its neighbour's.
    """

    layer: Layer
    length: int
    width: int
    influence: np.ndarray = field(repr=False)

    @property
    def left(self) -> float:
        """The influence of the first token, as a share of the neighbour's."""
        return float(self.influence[-1])

    @property
    def sequential_steps(self) -> int:
        """Steps that must wait for one another when a text is read ("sequential operations")."""
        return 1 if self.layer == "attention" else self.length

    @property
    def path(self) -> int:
        """Steps from the first token to the last output."""
        return 1 if self.layer == "attention" else self.length

    @property
    def products(self) -> int:
        """Multiplications: an RNN has two matrices (d, d), an LSTM eight, attention four and 2 T² d."""
        each = self.length * self.width**2
        if self.layer == "attention":
            return 4 * each + 2 * self.length**2 * self.width
        return 2 * each if self.layer == "rnn" else 8 * each


def layer_influence(layer: Layer, length: int, width: int = 64) -> LayerInfluence:
    """Measures PyTorch's untrained layer, an LSTM's forget bias 1: the geometric mean of SEEDS."""
    logs = np.mean([np.log(each) for each in _influences(layer, length, width)], axis=0)
    return LayerInfluence(layer, length, width, np.exp(logs - logs[0]))


def _influences(layer: Layer, length: int, width: int) -> Iterator[np.ndarray]:
    """Yields the gradient's length by distance, 1 ... length - 1, of each seed, in float64."""
    for seed in range(SEEDS):
        chance = torch.Generator().manual_seed(seed)
        net = _net(layer, width, chance)
        x = torch.randn(1, length, width, dtype=torch.float64, generator=chance).requires_grad_()
        direction = torch.randn(width, dtype=torch.float64, generator=chance)
        out = net(x, x, x, need_weights=False)[0] if layer == "attention" else net(x)[0]
        (slope,) = torch.autograd.grad((out[0, -1] * direction).sum(), x)
        yield slope[0].norm(dim=-1).flip(0)[1:].numpy()


def _net(layer: Layer, width: int, chance: torch.Generator) -> nn.Module:
    kind = {"device": "meta", "dtype": torch.float64, "batch_first": True}  # filled here, from our own dice
    net: nn.Module
    if layer == "attention":
        net = nn.MultiheadAttention(width, HEADS, **kind)
    else:
        net = (nn.RNN if layer == "rnn" else nn.LSTM)(width, width, **kind)
    net = materialise(net, "cpu")
    with torch.no_grad():
        for weights in net.parameters():
            weights.uniform_(-(width**-0.5), width**-0.5, generator=chance)
        if isinstance(net, nn.LSTM):  # PyTorch's two biases a gate, in the order input, forget, cell, output
            own, other = (getattr(net, f"bias_{part}_l0") for part in ("hh", "ih"))
            own[width : 2 * width] = FORGET
            other[width : 2 * width] = 0.0
    return net
