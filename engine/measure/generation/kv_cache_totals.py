"""A text written with a KV cache and without, summed up; and a cache for every number of key-value heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.measure.generation.kv_cache import CacheSize, Pair, cache_size
from engine.parts.protocols import Parts
from engine.parts.registry import HEALTHY

Family = Literal["MHA", "GQA", "MQA"]
SHARED = 8  # key-value heads that models after MHA chose (LLaMA-2 70B, LLaMA-3, Mistral)


@dataclass(frozen=True, eq=False)
class Totals:
    """Of both generations. Arrays are (step,); FLOPs are whole numbers."""

    cached: np.ndarray = field(repr=False)
    uncached: np.ndarray = field(repr=False)
    cached_sum: np.ndarray = field(repr=False)  # up to each step, that one included
    uncached_sum: np.ndarray = field(repr=False)
    refilled: np.ndarray = field(repr=False)
    same: int  # steps in which both wrote the same token
    difference: float  # the largest one between two logits of one step

    @property
    def times(self) -> float:
        """How many times as many FLOPs it takes without the cache, in all."""
        return float(self.uncached_sum[-1] / self.cached_sum[-1])

    @property
    def times_last(self) -> float:
        """The same of the last step alone."""
        return float(self.uncached[-1] / self.cached[-1])


def totals(pairs: Sequence[Pair]) -> Totals:
    """Of at least one step."""
    cached, uncached = (
        np.array([getattr(p, name) for p in pairs], dtype=np.int64) for name in ("flops", "flops_without")
    )
    return Totals(
        cached,
        uncached,
        cached.cumsum(),
        uncached.cumsum(),
        np.array([p.refilled for p in pairs]),
        sum(p.token == p.token_without for p in pairs),
        max(p.difference for p in pairs),
    )


def first_refill(pairs: Sequence[Pair]) -> tuple[int, int] | None:
    """(the first step before which the context was full, the position that stands at 0 from there on); None
    where it never was.

    The second is counted as positions stood before.
    """
    step = next((i for i, pair in enumerate(pairs) if pair.refilled), None)
    return None if step is None else (step, pairs[step].begin - pairs[step - 1].begin)


def family(kv_heads: int, heads: int) -> Family:
    """Multi-head (each query head has a key head), grouped-query (Ainslie et al. 2023), or multi-query
    attention (Shazeer 2019).

    >>> family(8, 8), family(2, 8), family(1, 8), family(1, 1)
    ('MHA', 'GQA', 'MQA', 'MHA')
    """
    return "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"


def divisors(heads: int) -> list[int]:
    """Every number of key-value heads that as many query heads can share evenly.

    >>> divisors(12)
    [12, 6, 4, 3, 2, 1]
    """
    return [n for n in range(heads, 0, -1) if heads % n == 0]


@dataclass(frozen=True)
class Sharing:
    """One cache for every number of key-value heads that a model could have, the most heads first."""

    heads: int  # of queries
    own: int  # key-value heads that the model has
    sizes: dict[int, CacheSize]  # key-value heads -> cache

    def saved(self, kv_heads: int) -> float:
        """How many times smaller than with the most heads."""
        return next(iter(self.sizes.values())).formula / self.sizes[kv_heads].formula


def can_share(config: ModelConfig) -> bool:
    """Whether its query heads may read the same keys and values: a configuration may say so."""
    try:
        replace(config.resolved(), n_kv_heads=1).validate()
    except ConfigError:
        return False
    return True


def sharing(config: ModelConfig, tokens: int, dtype: str, parts: Parts = HEALTHY) -> Sharing:
    """Caches of `tokens` positions, for every number of key-value heads that the mixer may have."""
    c = config.resolved()
    ways = divisors(c.n_heads) if can_share(c) else [c.n_kv_heads]
    return Sharing(c.n_heads, c.n_kv_heads, {n: cache_size(c, tokens, dtype, n, parts) for n in ways})


def by_family(config: ModelConfig, tokens: int, dtype: str) -> dict[Family, int]:
    """Bytes of a cache with each way of sharing; grouped: the model's own number, else SHARED heads."""
    c = config.resolved()
    shared = c.n_kv_heads if c.n_kv_heads < c.n_heads else SHARED
    ways: dict[Family, int] = {"MHA": c.n_heads, "GQA": shared, "MQA": 1}
    return {way: cache_size(c, tokens, dtype, n).formula for way, n in ways.items()}
