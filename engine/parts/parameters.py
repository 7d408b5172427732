"""Parameters: matrices stored together, and the initial value of each before the first step of a training.

A part declares these in `initial_values`, by the name of a parameter, or of an `nn.Linear`, whose bias then
starts at 0: {"gain": 1.0, "w_in": "matrix", "w_out": "to_stream"}. A number is the value itself. A kind says
how to draw from N(0, std), see `standard_deviation`: "matrix" (outputs, inputs); "to_stream", a matrix whose
output is added to the residual stream; "table", a row for each token or position.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from engine.config import Init
from engine.errors import ConfigError

Initial = float | Literal["matrix", "to_stream", "table"]
InitialValues = Mapping[str, Initial]


class StackedLinear(nn.Linear):
    """Several matrices that read the same input, row block under row block: one product instead of several.

    `row_blocks` are their heights; an optimiser that looks at whole matrices (Muon) must take them apart.
    """

    def __init__(self, d_in: int, row_blocks: tuple[int, ...], bias: bool) -> None:
        super().__init__(d_in, sum(row_blocks), bias=bias)
        self.row_blocks = row_blocks


def standard_deviation(kind: Initial, parameter: Tensor, init: Init, writes: int) -> float:
    """Returns the standard deviation of a parameter's first values. `writes` is how many sublayers write to
    its residual stream.

    scaled  0.02; 0.02 / sqrt(writes) for "to_stream", so that the sum of all writes keeps its size with
            depth (GPT-2, Radford et al. 2019, 2.3)
    plain   0.02 for all of them
    fan_in  matrices 1 / sqrt(inputs), so that what they make is as large as what they read (LeCun et al.
            1998); tables 0.02
    normal  matrices 1 / sqrt(inputs), tables 1: a table as `torch.nn.Embedding` draws it
    torch   matrices 1 / sqrt(3 inputs), tables 1: both as `torch.nn` draws them. Its matrices are uniform
            between -1 / sqrt(inputs) and 1 / sqrt(inputs), a third of the variance of `normal`
    """
    if kind == "table":
        return 1.0 if init in ("normal", "torch") else 0.02
    if init in ("fan_in", "normal", "torch"):
        return 1 / math.sqrt(parameter.shape[1] * (3 if init == "torch" else 1))
    return 0.02 / math.sqrt(writes) if kind == "to_stream" and init == "scaled" else 0.02


@torch.no_grad()
def initialise(model: Any, seed: int, init: Init = "scaled") -> None:
    """Gives every parameter of a model its starting value, as its part declares it. Drawn on the CPU, so that
    it is the same on every device. `model.parts.spread` may change a standard deviation: a fault's hook.

    Raises ConfigError for a parameter whose initial value no part declares.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        initial, writes, bare = _declared(model, name)
        if not isinstance(initial, str):
            parameter.fill_(initial)
            continue
        std = model.parts.spread(bare, standard_deviation(initial, parameter, init, writes))
        values = torch.empty(parameter.shape)
        if init == "torch" and initial != "table":
            values.uniform_(-math.sqrt(3) * std, math.sqrt(3) * std, generator=generator)
        else:
            values.normal_(0.0, std, generator=generator)
        parameter.copy_(values)


@torch.no_grad()
def set_constants(part: Any) -> None:
    """Sets the parameters of a part that start at a number."""
    for name, parameter in part.named_parameters():
        if isinstance(value := part.initial_values[name], float):
            parameter.fill_(value)


def _declared(model: nn.Module, name: str) -> tuple[Initial, int, str]:
    """Returns a parameter's initial value, how many sublayers write to the stream of its stack, and its name
    within that stack.
    """
    module, path = model, name.split(".")
    initial, writes, bare = None, 1, name
    for depth in range(len(path)):
        rest = ".".join(path[depth:])
        if hasattr(module, "residual_writes"):
            writes, bare = int(module.residual_writes), rest  # type: ignore[arg-type]
        declared = getattr(module, "initial_values", {})
        if rest in declared:
            initial = declared[rest]
        elif path[depth] in declared:  # a matrix with its bias
            initial = declared[path[depth]] if path[-1] == "weight" else 0.0
        module = getattr(module, path[depth])
    if initial is None:
        raise ConfigError("initial_values", name, "is declared by no part: its own must declare it")
    return initial, writes, bare
