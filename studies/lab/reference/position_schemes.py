"""Position schemes a second time, from the papers, for `second`: free of the engine's parts."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from engine.config import ResolvedConfig


def turned(x: Tensor, theta: float) -> Tensor:
    """Applies RoPE (Su et al. 2021) to x (head, position, width): dimensions i and i + width/2 are one
    complex number, multiplied by e^(i · position · theta^(-2i/width)).
    """
    real, imaginary = x.chunk(2, dim=-1)
    half = real.shape[-1]
    frequency = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * frequency  # (position, width/2)
    result = torch.complex(real, imaginary) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([result.real, result.imag], -1)


def hidden(c: ResolvedConfig, length: int) -> Tensor:
    """Returns (query, key): True where a query may not look, at later keys and at those before its window."""
    place = torch.arange(length)
    back = place[:, None] - place[None, :]
    outside = back < 0 if c.causal else torch.zeros_like(back, dtype=torch.bool)
    return outside | (back >= c.window) if c.window else outside


def position_bias(c: ResolvedConfig, w: Mapping[str, Tensor], length: int) -> Tensor:
    """Returns the bias of the scores by distance, (head, query, key)."""
    place = torch.arange(length)
    back = place[:, None] - place[None, :]
    if c.position == "alibi":  # Press et al. 2022
        return -torch.tensor(slopes(c.n_heads))[:, None, None] * back.abs()
    if c.position == "t5":
        return w["positions.weight"].T[:, buckets(back, c.causal)]
    return torch.zeros(1, 1, 1)


def sines(length: int, width: int) -> Tensor:
    """Returns (position, width): sin and cos of position / 10000^(2i/width), in turn."""
    table = torch.empty(length, width)
    angle = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


def slopes(n: int) -> list[float]:
    """Returns ALiBi's slopes: powers of 2^(-8/n); where n is no power of two, those of the next smaller one,
    then every other of the next larger one (Press et al. 2022, their code).
    """
    if n & (n - 1) == 0:
        return [2 ** (-8 * i / n) for i in range(1, n + 1)]
    below = 1 << (n.bit_length() - 1)
    return slopes(below) + slopes(2 * below)[0::2][: n - below]


def buckets(back: Tensor, causal: bool) -> Tensor:
    """Returns T5's bucket of each distance (Raffel et al. 2020): half of them exact, the others up to 128,
    each a little wider than the one before. In both directions, each has half of the 32.
    """
    count = 32 if causal else 16
    later = torch.zeros_like(back) if causal else (back < 0) * count
    far = back.clamp(min=0) if causal else back.abs()
    exact = count // 2
    share = torch.log(far.clamp(min=exact).float() / exact) / math.log(128 / exact)
    wide = torch.minimum(exact + (share * (count - exact)).long(), torch.tensor(count - 1))
    return later + torch.where(far < exact, far, wide)
