"""The savings when query heads share keys and values (MQA, Shazeer 2019; GQA, Ainslie et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.parts.registry import HEALTHY, Parts
from studies.costs.cards import numbers
from studies.costs.cards.table import card_of

Kind = Literal["multi-head", "grouped-query", "multi-query"]


@dataclass(frozen=True)
class SharedKeys:
    """The costs of keys and values: `parameters` of W_K and W_V (with biases), and cache bytes."""

    parameters: int
    all_parameters: int
    cache_bytes_per_token: int
    cache_bytes: int  # at the full context


def shared_keys(
    config: ModelConfig, n_heads: int, n_kv_heads: int, bytes_per_number: int = 2, parts: Parts = HEALTHY
) -> SharedKeys:
    """Counts attention with other heads of the same d_head, as the `parts` have it. W_K and W_V are what the
    mixer has more than with no key-value head. Raises ConfigError when n_kv_heads does not divide n_heads.
    """
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ConfigError(
            "n_kv_heads",
            n_kv_heads,
            f"must divide n_heads ({n_heads}): every key-value head serves the same number of query heads",
        )
    mixer = parts.mixers["attention"]  # the one that can share, whatever the model has
    c = replace(config.resolved(), n_heads=n_heads, n_kv_heads=n_kv_heads)
    without = replace(c, n_kv_heads=0)
    parameters = numbers(card_of(mixer).tensors(c), c) - numbers(card_of(mixer).tensors(without), without)
    token = c.n_layers * card_of(mixer).cached_numbers(c) * bytes_per_number
    return SharedKeys(parameters, c.n_layers * parameters, token, c.context * token)


def cache_saving(shared: SharedKeys, full: SharedKeys) -> float:
    """Returns the share of the cache that sharing saves, in [0, 1)."""
    return 1 - shared.cache_bytes_per_token / full.cache_bytes_per_token


def served_by(n_heads: int, n_kv_heads: int) -> np.ndarray:
    """Returns the key-value head of each query head, (head,): neighbours share one."""
    return np.arange(n_heads) // (n_heads // n_kv_heads)


def fitting(n_heads: int, wanted: int) -> int:
    """Returns the largest number of key-value heads, at most `wanted`, that divides n_heads.

    >>> fitting(12, 5), fitting(12, 6), fitting(7, 100)
    (4, 6, 7)
    """
    return max(i for i in range(1, min(wanted, n_heads) + 1) if n_heads % i == 0)


def kind(n_heads: int, n_kv_heads: int) -> Kind:
    """Names the way of sharing.

    >>> kind(8, 8), kind(8, 2), kind(8, 1), kind(1, 1)
    ('multi-head', 'grouped-query', 'multi-query', 'multi-head')
    """
    if n_kv_heads == n_heads:
        return "multi-head"
    return "multi-query" if n_kv_heads == 1 else "grouped-query"
