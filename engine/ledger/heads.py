"""Cost of attention when its width is cut into more or fewer heads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.config import ResolvedConfig
from engine.ledger.flops import products
from engine.parts.registry import HEALTHY, Parts

HEADS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Cut:
    """`flops` of all attention for one token among `tokens`, which look at each other's keys of `d_head`
    numbers.
    """

    n_heads: int
    d_head: int
    tokens: int
    flops: int


def by_heads(c: ResolvedConfig, parts: Parts = HEALTHY) -> tuple[Cut, ...]:
    """Returns the same width of queries, n_heads * d_head, cut into each number of HEADS that divides it;
    every head has keys of its own (Vaswani et al. 2017, 3.2.2). At the model's full context.
    """
    width, result = c.n_heads * c.d_head, []
    for count in (count for count in HEADS if width % count == 0):
        d_head = width // count
        cut = replace(c, n_heads=count, n_kv_heads=count, d_head=d_head)
        rows = [p for p in products(cut, c.context, parts=parts) if p.component == "attention"]
        result.append(Cut(count, d_head, c.context, sum(p.flops for p in rows)))
    return tuple(result)
