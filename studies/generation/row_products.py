"""Products of one vector with a matrix in float32, bfloat16 and int8: the time of a token at batch 1; and
of a few vectors at once.

A vector meets every weight once, so a token takes as long as reading all weights from memory. Weights in half
or a quarter of the bytes take less time and are rounded: bfloat16 has 8 binary digits, int8 255 steps between
plus and minus the largest weight of a row.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Protocol, get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engine.errors import ConfigError
from engine.training.numerics import has_bfloat16

Arithmetic = Literal["float32", "bfloat16", "int8"]
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
BYTES: dict[Arithmetic, int] = {"float32": 4, "bfloat16": 2, "int8": 1}  # of a weight
COPY_LIMIT = 1 << 18  # entries: up to this size a matrix is copied, transposed; a larger one is read in place
STEPS = 127  # of int8, on either side of 0
FEW, STRIPE = (
    16,
    192,
)  # vectors at once, at most; rows of a matrix that stay in the processor's cache meanwhile


class Product(Protocol):
    """W x + b. It keeps no state, so decoders share it."""

    def __call__(self, x: Tensor, *, out: Tensor) -> Tensor:
        """Maps x (in,) to out (out,), which is overwritten and returned."""


def product(weight: Tensor, bias: Tensor | None, arithmetic: Arithmetic = "float32") -> Product:
    """Prepares the product with weight (out, in) and bias (out,): "float32" uses the model's own weights, the
    others a rounded copy. At most COPY_LIMIT entries fit into the processor's cache, and are never rounded.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if weight.numel() <= COPY_LIMIT:
        return _transposed(weight, bias)
    return _LARGE[arithmetic](weight, bias)


def check_arithmetic(arithmetic: str, device: torch.device) -> None:
    """Raises ConfigError, with the reason, for an arithmetic that is unknown or that this machine lacks."""
    if arithmetic not in ARITHMETICS:
        raise ConfigError("arithmetic", arithmetic, f"must be one of {', '.join(ARITHMETICS)}")
    if arithmetic == "bfloat16" and not has_bfloat16(device):
        why = "this processor does not multiply bfloat16, so that nothing would be won"
        raise ConfigError("arithmetic", arithmetic, why)
    if arithmetic == "int8" and (device.type != "cpu" or not _has_int8()):
        raise ConfigError("arithmetic", arithmetic, "PyTorch has no products of int8 here; float32 is exact")


def _transposed(weight: Tensor, bias: Tensor | None) -> Product:
    """W as a copy that lies transposed in memory: a small product takes two thirds of the time of
    `nn.Linear`.
    """
    copy = weight.t().contiguous().t()  # (out, in)
    return partial(torch.mv, copy) if bias is None else partial(torch.addmv, bias, copy)


def _unchanged(weight: Tensor, bias: Tensor | None) -> Product:
    """W of the model itself, without a copy: as fast where memory is the bottleneck."""

    def multiply(x: Tensor, *, out: Tensor) -> Tensor:
        torch.mv(weight, x, out=out)
        return out if bias is None else out.add_(bias)

    return multiply


def _bfloat16(weight: Tensor, bias: Tensor | None) -> Product:
    """W and x in bfloat16; the sum is made in float32 and rounded once."""
    rounded = weight.bfloat16()

    def multiply(x: Tensor, *, out: Tensor) -> Tensor:
        out.copy_(torch.mv(rounded, x.bfloat16()))
        return out if bias is None else out.add_(bias)

    return multiply


def _int8(weight: Tensor, bias: Tensor | None) -> Product:
    """W in int8, with a scale for each row. Rounding x to 255 steps would cost more, for a few activations
    are a hundred times as large as the rest. So x is split into its nearest step and the remainder in steps
    254 times as fine, and W is read once for both.
    """
    scales = weight.abs().amax(1).clamp_min(1e-12).double() / STEPS
    with warnings.catch_warnings():  # torch announces another API for int8
        warnings.simplefilter("ignore", UserWarning)
        rounded = torch.quantize_per_channel(
            weight.float(), scales, torch.zeros(len(weight), dtype=torch.int64), 0, torch.qint8
        )
        packed = torch.ops.quantized.linear_prepack(rounded, None)
    # Without VNNI two products are added in 16 bits, and may overflow them.
    steps = STEPS if torch.cpu._is_vnni_supported() else STEPS // 2

    def multiply(x: Tensor, *, out: Tensor) -> Tensor:
        x = x.float()
        largest = float(x.abs().max())
        if not math.isfinite(largest):
            return out.fill_(math.nan)
        scale, finer = max(largest, 1e-12) / steps, 2 * steps
        first = (x / scale).round_().mul_(scale)
        digits = torch.stack((first, (x - first).mul_(finer)))  # (2, in)
        both = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            digits, scale, steps + 1, packed
        )
        out.copy_(torch.add(both[0], both[1], alpha=1 / finer))
        return out if bias is None else out.add_(bias)

    return multiply


_LARGE: dict[Arithmetic, Callable[..., Product]]
_LARGE = {"float32": _unchanged, "bfloat16": _bfloat16, "int8": _int8}


def _has_int8() -> bool:
    """True if this build of torch has dynamic int8 products, and an engine for them."""
    available = hasattr(torch, "quantize_per_channel") and hasattr(
        torch.ops.quantized, "linear_with_input_q_dq_qweight_dq_output_fp32"
    )
    return available and torch.backends.quantized.engine in ("x86", "fbgemm", "onednn")


class FewRows(TorchFunctionMode):
    """Computes `F.linear` of a few vectors (up to FEW) with a large matrix in stripes of it. The library
    copies the whole matrix first, which takes as long as reading it again; a stripe is read from memory once,
    so seven vectors take about 1.4 times as long as one instead of 2.6 times.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = _few_rows(*args) if func is F.linear and not kwargs else None
        return func(*args, **(kwargs or {})) if result is None else result


def _few_rows(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor | None:
    """Returns x W^T + b (..., out) for x (..., in); None where stripes would win nothing."""
    (out, width), rows = weight.shape, x.numel() // x.shape[-1]
    stripe = next((size for size in range(min(STRIPE, out), 0, -1) if out % size == 0), 1)
    if not (1 < rows <= FEW and weight.numel() > COPY_LIMIT and stripe >= FEW and weight.is_contiguous()):
        return None
    count = out // stripe
    # (stripe, row, in) @ (stripe, in, out of the stripe) -> (stripe, row, out of the stripe)
    each = torch.bmm(x.reshape(rows, width).expand(count, -1, -1), weight.view(count, stripe, width).mT)
    result = each.transpose(0, 1).reshape(*x.shape[:-1], out)
    return result if bias is None else result.add_(bias)
