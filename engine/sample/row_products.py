"""Products of one row with a matrix, in three arithmetics: what reading one token at a time is made of.

A row meets every weight once, so the time of a token is the time in which all weights come out of memory.
Weights in half or a quarter of the bytes take less, and what is lost is rounding: bfloat16 keeps 8 binary
digits of a weight, int8 one of 255 steps between the largest of its row and its negative.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from engine.errors import ConfigError
from engine.training.numerics import has_bfloat16

Arithmetic = Literal["float32", "bfloat16", "int8"]
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
BYTES: dict[Arithmetic, int] = {"float32": 4, "bfloat16": 2, "int8": 1}  # of a weight
LAID = 1 << 18  # numbers: a matrix up to here is copied, input by output; a larger one is read where it lies
STEPS = 127  # of int8, to either side of 0


class Product(Protocol):
    """x W^T + b: x (1, in) -> `out` (1, out), which is written to. Never changed: many readers share it."""

    def __call__(self, x: Tensor, out: Tensor) -> Tensor: ...


def product(weight: Tensor, bias: Tensor | None, arithmetic: Arithmetic = "float32") -> Product:
    """The product with weight (out, in) and bias (out,). "float32" is the model's own arithmetic, whatever
    its weights are; the others keep a rounded copy. Small matrices, which the processor's cache holds, are
    never rounded: nothing would be won.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if weight.numel() <= LAID:
        return _Laid(weight, bias)
    return _LARGE[arithmetic](weight, bias)


def check(arithmetic: str, device: torch.device) -> None:
    """Raises ConfigError, with the reason, for an arithmetic that there is not, or not on this machine."""
    if arithmetic not in ARITHMETICS:
        raise ConfigError("arithmetic", arithmetic, f"must be one of {', '.join(ARITHMETICS)}")
    if arithmetic == "bfloat16" and not has_bfloat16(device):
        raise ConfigError(
            "arithmetic",
            arithmetic,
            "this processor does not multiply bfloat16, so that nothing would be won",
        )
    if arithmetic == "int8" and (device.type != "cpu" or not _has_int8()):
        raise ConfigError("arithmetic", arithmetic, "PyTorch has no products of int8 here; float32 is exact")


class _Laid:
    """W laid out input by output: for a small one a third faster than `nn.Linear`."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight.t().contiguous(), bias

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        if self.bias is None:
            return torch.mm(x, self.weight, out=out)
        return torch.addmm(self.bias, x, self.weight, out=out)


class _Lying:
    """W as the model has it: no copy, and as fast where memory is what is waited for."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        torch.mv(self.weight, x[0], out=out[0])
        return out if self.bias is None else out.add_(self.bias)


class _Bfloat16:
    """W and x in bfloat16; the sum is made in float32 and rounded once."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight.bfloat16(), bias

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        out[0].copy_(torch.mv(self.weight, x[0].bfloat16()))
        return out if self.bias is None else out.add_(self.bias)


class _Int8:
    """W in int8 with a scale for each of its rows.

    The product is of int8 with int8, and a row x rounded to 255 steps would lose more than W does: a few of a
    real model's activations are a hundred times as large as the rest. So x is read as two digits, its nearest
    step and what is left of it in steps 254 times as fine: two rows, for which W comes out of memory once.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        scales = weight.abs().amax(1).clamp_min(1e-12).double() / STEPS
        with warnings.catch_warnings():  # torch says that this way of holding int8 will be another one day
            warnings.simplefilter("ignore", UserWarning)
            rounded = torch.quantize_per_channel(
                weight.float(), scales, torch.zeros(len(weight), dtype=torch.int64), 0, torch.qint8
            )
            self.packed = torch.ops.quantized.linear_prepack(rounded, None)
        self.bias = bias
        # Without the instructions for it two products may not fit into the 16 bits in which they are added.
        self.steps = STEPS if torch.cpu._is_vnni_supported() else STEPS // 2

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        x = x.float()
        largest = float(x.abs().max())
        if not math.isfinite(largest):
            return out.fill_(math.nan)
        scale, finer = max(largest, 1e-12) / self.steps, 2 * self.steps
        first = (x / scale).round_().mul_(scale)
        digits = torch.cat((first, (x - first).mul_(finer)))  # (2, in)
        both = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            digits, scale, self.steps + 1, self.packed
        )
        out.copy_(torch.add(both[:1], both[1:], alpha=1 / finer))
        return out if self.bias is None else out.add_(self.bias)


_LARGE: dict[Arithmetic, Callable[[Tensor, Tensor | None], Product]] = {
    "float32": _Lying,
    "bfloat16": _Bfloat16,
    "int8": _Int8,
}


def _has_int8() -> bool:
    """Whether this build of torch has its dynamic int8 products, and an engine for them."""
    there = hasattr(torch, "quantize_per_channel") and hasattr(
        torch.ops.quantized, "linear_with_input_q_dq_qweight_dq_output_fp32"
    )
    return there and torch.backends.quantized.engine in ("x86", "fbgemm", "onednn")
