"""The arithmetic that a training uses on this machine, chosen once and described in a sentence."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import torch

from engine.config import Precision


@dataclass(frozen=True)
class Numerics:
    """Device and precision of a training. `dtype` holds parameters and activations; `matmul` is torch's
    float32 product setting; `sentence` is for the page.
    """

    device: torch.device
    dtype: torch.dtype
    matmul: str
    sentence: str

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Sets the float32 product path for the enclosed work, and restores the previous one."""
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(self.matmul)
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


def choose(precision: Precision = "auto", device: str | torch.device = "auto") -> Numerics:
    """Returns the arithmetic for a requested precision. `auto` takes bfloat16 where the device multiplies it
    faster than float32, else float32.
    """
    where = pick_device() if str(device) == "auto" else torch.device(device)
    gains = gains_by_bfloat16(where)
    dtype = {
        "auto": torch.bfloat16 if gains else torch.float32,
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
    }[precision]
    name = {"cpu": "this processor", "cuda": "the GPU", "mps": "the Apple GPU"}.get(where.type, where.type)
    if dtype == torch.bfloat16:
        speed = "" if gains else " (float32 would be faster here)"
        return Numerics(where, dtype, "highest", f"bfloat16 on {name}{speed}, with float32 master weights")
    if where.type == "cpu" and not _is_intel() and onednn_is_exact():
        return Numerics(
            where, dtype, "medium", f"float32 on {name}, products by oneDNN (checked: exact float32)"
        )
    return Numerics(where, dtype, "highest", f"float32 on {name}")


def pick_device() -> torch.device:
    """Returns CUDA where it is available, then MPS, then the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def has_bfloat16(device: torch.device) -> bool:
    """True if bfloat16 products are a native instruction of the device, not emulated. A processor that torch
    is told to use as an older one (ATEN_CPU_CAPABILITY=avx2) counts as that one.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu" and torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2"):
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False


def gains_by_bfloat16(device: torch.device) -> bool:
    """True if products in bfloat16 take less time than in float32 there.

    An Intel Xeon with the instruction but without AMX multiplied bfloat16 at half of float32's rate: a step
    of *fast* took 1.4 times as long. The maker decides and not a measurement, since two processes of one busy
    machine would disagree.
    """
    if device.type == "cpu" and _is_intel():
        return has_bfloat16(device) and torch.cpu._is_amx_tile_supported()
    return has_bfloat16(device)


def _is_intel() -> bool:
    known: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()  # of torch 2.11 and later
    return "Intel" in str(known.get("cpu_name", ""))


@cache
def onednn_is_exact() -> bool:
    """True if 'medium' float32 products keep float32's accuracy here.

    'medium' hands products to oneDNN: twice as fast as MKL on AMD, 3 to 12% slower on an Intel Xeon. Where
    the processor has AMX, oneDNN rounds the factors to bfloat16 (relative error 2e-3 instead of 2e-7), and
    calling that float32 would be untrue.
    """
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(256, 256, generator=generator) for _ in range(2))
    exact = a.double() @ b.double()
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        error = (a @ b - exact).norm() / exact.norm()
    finally:
        torch.set_float32_matmul_precision(before)
    return bool(error < 1e-5)


def with_glibc(call: Callable[[ctypes.CDLL], int]) -> bool:
    """Calls glibc's allocator. Returns False where there is no such allocator."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(call(ctypes.CDLL(None)))
    except (OSError, AttributeError):
        return False


def keep_memory() -> bool:
    """Asks glibc's allocator to keep freed memory for this whole process (4-19% faster steps). For worker
    processes only.

    Every step frees and wants the same buffers; by default large ones go back to the kernel and are faulted
    in anew. Returns False where there is no such allocator.
    """
    m_trim_threshold, m_mmap_max, never = -1, -4, 2**31 - 1
    return with_glibc(lambda libc: libc.mallopt(m_mmap_max, 0) and libc.mallopt(m_trim_threshold, never))


def perplexity(nats: float) -> float:
    """Returns e^nats, of a loss in nats per token: as many equally likely tokens would be as surprising.
    Never infinite; NaN stays NaN.

    >>> perplexity(0.0), round(perplexity(math.log(65)), 6), math.isfinite(perplexity(1e9))
    (1.0, 65.0, True)
    """
    return math.exp(min(nats, 700.0))


def in_bits(nats: float) -> float:
    """
    >>> round(in_bits(math.log(8)), 6)
    3.0
    """
    return nats / math.log(2)
