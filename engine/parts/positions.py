"""Positions: attention alone cannot tell `dog bites man` from `man bites dog`; these can.

A scheme has up to three hooks, each of which is the identity by default: `embed` (added to the token
embeddings), `rotate` (turns queries and keys), `bias` (added to the scores). Attention calls the hooks and
never asks which scheme it has.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from engine.config import ResolvedConfig
from engine.errors import ShapeError
from engine.parts.parameters import InitialValues


class PositionHooks:
    """One scheme made ready for one stretch of positions: what its tables cost is paid once a forward pass.

    `prepare(length, like, start)` makes it for positions start .. start + length - 1; with start > 0 (a KV
    cache holds what came before) the queries are that stretch and the keys everything up to its end.
    """

    def embed(self, x: Tensor) -> Tensor | None:
        """Returns the addition to the embeddings x (batch, query, d_model): (query, d_model), or None for
        nothing.
        """
        return None

    def rotate(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Turns q (batch, head, query, d_head) and k (batch, kv_head, key, d_head) by position."""
        return self.turn(q), self.turn(k)

    def turn(self, x: Tensor) -> Tensor:
        """Turns queries or keys (..., position, d_head) by position."""
        return x

    def bias(self, scores: Tensor) -> Tensor:
        """Adds the bias of the distance to scores (batch, head, query, key)."""
        return scores

    def at(self, position: int) -> PositionHooks:
        """Returns the hooks of the one query at `position` and the keys up to it. The stretch must start at
        0.
        """
        return self


HookName = Literal["embed", "rotate", "bias"]


class Scheme(nn.Module):
    """Base of the position schemes, which tell positions apart by one or more of the three hooks."""

    present: ClassVar[bool] = True
    enters: ClassVar[tuple[HookName, ...]] = ()  # the hooks that it uses

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__()

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        """Returns the hooks of positions start .. start + length - 1, in the dtype and on the device of
        `like`. Raises ShapeError for positions beyond a table.
        """
        return PositionHooks()

    @classmethod
    def reach(cls, config: ResolvedConfig) -> int | None:
        """Returns how many positions the scheme covers; None: any number."""
        return None


class NoPosition(Scheme):
    """No positions at all: a bag of words, but for what the causal mask leaks."""

    present: ClassVar[bool] = False


class Added(PositionHooks):
    """A row for each position, added to the embeddings."""

    def __init__(self, table: Tensor) -> None:
        self.table = table  # (query, d_model)

    def embed(self, x: Tensor) -> Tensor | None:
        return self.table

    def at(self, position: int) -> PositionHooks:
        return Added(self.table[position : position + 1])


class Sinusoidal(Scheme):
    """PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(same) (Vaswani et al. 2017, 3.5). No
    parameters.
    """

    enters: ClassVar[tuple[HookName, ...]] = ("embed",)

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.d_model = config.d_model

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        table = sinusoidal_table(length, self.d_model, 10_000.0, start, like.device)
        return Added(table.to(like.dtype))


def sinusoidal_table(
    length: int, d_model: int, base: float = 10_000.0, start: int = 0, device: torch.device | None = None
) -> Tensor:
    """Returns PE of positions start .. start + length - 1, (position, d_model), d_model even: sines at even
    dimensions, cosines at odd ones.

    >>> sinusoidal_table(2, 2).tolist()[0]
    [0.0, 1.0]
    """
    angles = _angles(start, length, d_model, base, device)  # (position, d_model/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)  # (position, d_model)


class Learned(Scheme):
    """A trained vector for each position (GPT-2, BERT). Parameters: context * d_model."""

    initial_values: ClassVar[InitialValues] = {"weight": "table"}
    enters: ClassVar[tuple[HookName, ...]] = ("embed",)

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.weight = nn.Parameter(torch.empty(config.context, config.d_model))

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        if start + length > len(self.weight):
            raise ShapeError(
                f"{start + length} positions were given, but the learned table has {len(self.weight)}: give"
                " at most that many tokens"
            )
        return Added(self.weight[start : start + length])

    @classmethod
    def reach(cls, config: ResolvedConfig) -> int | None:
        return config.context


class _Rotated(PositionHooks):
    def __init__(self, cos: Tensor, sin: Tensor) -> None:
        self.cos, self.sin = cos, sin  # each (query, d_rotary)

    def turn(self, x: Tensor) -> Tensor:
        turned = self.cos.shape[-1]
        if turned == x.shape[-1]:
            return rotate_half_pairs(x, self.cos, self.sin)
        return torch.cat((rotate_half_pairs(x[..., :turned], self.cos, self.sin), x[..., turned:]), -1)

    def at(self, position: int) -> PositionHooks:
        return _Rotated(self.cos[position : position + 1], self.sin[position : position + 1])


class Rope(Scheme):
    """Rotary positions (Su et al. 2021): turns each pair of q and k by position * frequency, so that q.k
    depends on the distance only. Half-split layout (LLaMA, NeoX): dimension i pairs with i + d_rotary/2. No
    parameters. With `rope_fraction` below 1 only the first d_rotary dimensions are turned, as if they were
    the head (GPT-NeoX, Black et al. 2022).
    """

    enters: ClassVar[tuple[HookName, ...]] = ("rotate",)

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.d_rotary, self.theta = config.d_rotary, config.rope_theta

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        angles = self.angles(start, length, like.device)  # (query, d_rotary/2)
        cos, sin = angles.cos(), angles.sin()
        # The sign of `rotate_half` is kept in the table: one multiplication fewer for every q and k.
        return _Rotated(torch.cat((cos, cos), -1).to(like.dtype), torch.cat((-sin, sin), -1).to(like.dtype))

    def angles(self, start: int, length: int, device: torch.device) -> Tensor:
        """Returns the angle of each pair at positions from `start` on, in radians, (length, d_rotary/2)."""
        return _angles(start, length, self.d_rotary, self.theta, device)


def rotate_half_pairs(x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Turns the pairs (x[i], x[i + d_rotary/2]) by their angles. x: (..., position, d_rotary); tables
    (position, d_rotary).

    (a, b) -> (a cos - b sin, a sin + b cos), with the minus sign inside `signed_sin`.
    """
    swapped = x.roll(x.shape[-1] // 2, dims=-1)  # (a, b) -> (b, a)
    return torch.addcmul(x * cos, swapped, signed_sin)


class _Biased(PositionHooks):
    def __init__(self, table: Tensor) -> None:
        self.table = table  # (head, query, key)

    def bias(self, scores: Tensor) -> Tensor:
        return scores + self.table

    def at(self, position: int) -> PositionHooks:
        return _Biased(self.table[:, position : position + 1, : position + 1])


class DistanceRow(PositionHooks):
    """The bias of the last of many queries, (head, 1, key), for a scheme that depends on the distance alone.
    Its end is the bias of any earlier query.
    """

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def at(self, position: int) -> PositionHooks:
        return _Biased(self.table[:, :, self.table.shape[2] - position - 1 :])


class Alibi(Scheme):
    """ALiBi (Press et al. 2022): scores get -slope * distance, a slope for each head. No parameters.

    Without a causal mask the distance counts both ways.
    """

    enters: ClassVar[tuple[HookName, ...]] = ("bias",)

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.n_heads = config.n_heads

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        position = torch.arange(start + length, device=like.device, dtype=torch.float32)
        distance = (position[start:, None] - position[None, :]).abs()  # (query, key)
        slopes = torch.tensor(alibi_slopes(self.n_heads), device=like.device)  # (head,)
        return _Biased((-slopes[:, None, None] * distance).to(like.dtype))


def alibi_slopes(n_heads: int) -> list[float]:
    """Returns 2^(-8/n), 2^(-16/n), ... for n a power of two; otherwise filled up from the next power, as in
    the paper's code.

    >>> alibi_slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** int(math.log2(n_heads))
    slopes = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    if power < n_heads:
        slopes += [2.0 ** (-4.0 * (2 * i + 1) / power) for i in range(n_heads - power)]
    return slopes


class T5Bias(Scheme):
    """A learned bias per head and distance bucket, shared by all layers (Raffel et al. 2020). Parameters: 32
    * n_heads.
    """

    initial_values: ClassVar[InitialValues] = {"weight": "table"}
    enters: ClassVar[tuple[HookName, ...]] = ("bias",)

    buckets, max_distance = 32, 128  # T5's own

    def __init__(self, config: ResolvedConfig) -> None:
        super().__init__(config)
        self.bidirectional = not config.causal
        self.weight = nn.Parameter(torch.empty(self.buckets, config.n_heads))

    def prepare(self, length: int, like: Tensor, start: int = 0) -> PositionHooks:
        position = torch.arange(start + length, device=like.device)
        bucket = t5_bucket(
            position[None, :] - position[start:, None], self.bidirectional, self.buckets, self.max_distance
        )
        return _Biased(self.weight[bucket].permute(2, 0, 1))  # (query, key, head) -> (head, query, key)


def t5_bucket(offset: Tensor, bidirectional: bool, buckets: int, max_distance: int) -> Tensor:
    """Returns the bucket of each offset key - query: exact for small distances, logarithmic up to
    max_distance, then one for all.
    """
    if bidirectional:
        buckets //= 2
        base = (offset > 0).long() * buckets
        distance = offset.abs()
    else:
        base = torch.zeros_like(offset)
        distance = (-offset).clamp(min=0)
    exact = buckets // 2
    log_ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    far = (exact + (log_ratio * (buckets - exact)).long()).clamp(max=buckets - 1)
    return base + torch.where(distance < exact, distance, far)


def _angles(start: int, length: int, width: int, base: float, device: torch.device | None) -> Tensor:
    """position / base^(2i/width) in radians, (length, width/2): wavelengths grow geometrically."""
    frequency = base ** (-torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)
    position = torch.arange(start, start + length, device=device, dtype=torch.float32)
    return torch.outer(position, frequency)  # (length,) x (width/2,)
