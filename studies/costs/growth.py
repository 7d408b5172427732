"""How the costs of a model grow with the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from engine.config import ResolvedConfig
from engine.parts.registry import HEALTHY, Parts
from studies.costs.flops import products, seen, seen_by_layers
from studies.costs.ledger import Ledger, kv_numbers

HEADS = (1, 2, 4, 8, 16, 32)
LEVEL = {  # what does not grow
    "feed-forward": ("feedforward",),
    "attention's matrices": ("attention", "cross_attention"),
    "unembedding": ("unembedding",),
}


def by_part(ledger: Ledger, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Returns forward FLOPs for one token, part by part: label -> (lengths,) float64. Growing
    parts are in proportion to the tokens looked at.
    """
    single = ledger.flops(1)
    result = {
        name: np.full(
            len(lengths),
            sum(p.flops for p in single.rows if p.component in components and not p.grows),
            dtype=np.float64,
        )
        for name, components in LEVEL.items()
    }
    level = np.full(len(lengths), single.forward - single.scores, dtype=np.float64)
    each = single.scores / ledger.config.n_layers
    scores = np.array([each * seen_by_layers(ledger.config, int(n)) for n in lengths], dtype=np.float64)
    return {"everything else": level, "scores and weighted sums": scores, **result}


def caches(ways: Mapping[str, Ledger], dtype: str, batch: int, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the bytes of the KV cache of `batch` texts of each length: name -> (lengths,) float64."""
    return {
        name: np.array([each.memory(dtype, batch, int(n)).kv_cache for n in lengths], dtype=np.float64)
        for name, each in ways.items()
    }


@dataclass(frozen=True)
class BreakEven:
    """Where a KV cache is as large as the weights, both in bfloat16."""

    weights: int  # bytes
    token: int  # bytes that one token takes in the cache; 0 where nothing can be kept
    group: int  # query heads for each key head
    window: int  # positions that attention looks back over; 0: all

    @property
    def most(self) -> int:
        """Bytes that one text's cache never exceeds, the window being below `tokens`; else 0."""
        return self.token * self.window if 0 < self.window < self.tokens else 0

    @property
    def tokens(self) -> float:
        return self.weights / self.token


def break_even(ledger: Ledger) -> BreakEven:
    c = ledger.config
    numbers = kv_numbers(c, ledger.encoder)
    group = c.n_heads // c.n_kv_heads
    return BreakEven(ledger.memory("bfloat16").weights, 2 * numbers, group, c.widest_window)


@dataclass(frozen=True)
class Headed:
    """Attention with so many heads of own keys: FLOPs of all layers a token, weights of one's patterns."""

    heads: int
    d_head: int
    flops: int
    weights: int


def by_heads(
    c: ResolvedConfig, tokens: int, parts: Parts = HEALTHY, heads: tuple[int, ...] = HEADS
) -> tuple[Headed, ...]:
    """Returns the same width shared out among those of `heads` that divide it, in a text of `tokens`. Heads
    are narrower in proportion, so products cost the same (Vaswani et al. 2017, 3.2.2).
    """
    width, result = c.n_heads * c.d_head, []
    for count in (each for each in heads if width % each == 0):
        other = replace(c, n_heads=count, n_kv_heads=count, d_head=width // count)
        rows = [p for p in products(other, tokens, parts=parts) if p.component == "attention"]
        result.append(Headed(count, width // count, sum(p.flops for p in rows), count * seen(c, tokens)))
    return tuple(result)
