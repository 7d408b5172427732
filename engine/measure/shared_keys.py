"""What it saves when query heads share keys and values (MQA, Shazeer 2019; GQA, Ainslie et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.config import ModelConfig
from engine.errors import ConfigError

Kind = Literal["multi-head", "grouped-query", "multi-query"]


@dataclass(frozen=True)
class SharedKeys:
    """What keys and values cost: `parameters` of W_K and W_V in one layer and in all (with their biases), and
    the cache in bytes.
    """

    parameters: int
    all_parameters: int
    cache_bytes_per_token: int
    cache_bytes: int  # at the full context


def shared_keys(config: ModelConfig, n_heads: int, n_kv_heads: int, bytes_per_number: int = 2) -> SharedKeys:
    """Counts for a resolved config with other numbers of heads and the same d_head (Shazeer 2019; Ainslie et
    al. 2023).

    The cache holds 2 * layers * kv_heads * d_head numbers a token. Raises ConfigError when n_kv_heads does
    not divide n_heads.
    """
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ConfigError(
            "n_kv_heads",
            n_kv_heads,
            f"must divide n_heads ({n_heads}): every key-value head serves the same number of query heads",
        )
    config = config.resolved()
    width = n_kv_heads * config.d_head
    parameters = 2 * width * (config.d_model + int(config.attention_bias))
    token = 2 * config.n_layers * width * bytes_per_number
    return SharedKeys(parameters, config.n_layers * parameters, token, config.context * token)


def saved(found: SharedKeys, full: SharedKeys) -> float:
    """The share of the cache that sharing saves, in [0, 1)."""
    return 1 - found.cache_bytes_per_token / full.cache_bytes_per_token


def served_by(n_heads: int, n_kv_heads: int) -> np.ndarray:
    """The key-value head of each query head, (head,): neighbours share one."""
    return np.arange(n_heads) // (n_heads // n_kv_heads)


def fitting(n_heads: int, wanted: int) -> int:
    """The largest number of key-value heads, at most `wanted`, that divides n_heads.

    >>> fitting(12, 5), fitting(12, 6), fitting(7, 100)
    (4, 6, 7)
    """
    return max(i for i in range(1, min(wanted, n_heads) + 1) if n_heads % i == 0)


def kind(n_heads: int, n_kv_heads: int) -> Kind:
    """What the field calls it.

    >>> kind(8, 8), kind(8, 2), kind(8, 1), kind(1, 1)
    ('multi-head', 'grouped-query', 'multi-query', 'multi-head')
    """
    if n_kv_heads == n_heads:
        return "multi-head"
    return "multi-query" if n_kv_heads == 1 else "grouped-query"
