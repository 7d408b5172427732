"""Guesses about the size of a model and its work, from configurations alone."""

from __future__ import annotations

from typing import Any

from engine.config import ResolvedConfig
from studies.costs.ledger import Ledger, kv_numbers
from studies.costs.since_2023 import Card
from studies.guesses import Truth, closest

EDGE = 0.05  # of a ratio: as good as that


def twice_as_wide(config: ResolvedConfig) -> dict[str, Any]:
    """Returns the fields of a model that is twice as wide throughout, with as many heads."""
    return {"d_model": 2 * config.d_model, "d_ff": 2 * config.d_ff, "d_head": 2 * config.d_head}


def wider(before: Ledger, after: Ledger) -> Truth:
    """Compares the parameters of a model with those of one twice as wide: "four" times, as a matrix with both
    sides doubled does, "twice", as one with one side does, or "between".
    """
    times = after.total / before.total
    right = "twice" if times < 2 * (1 + EDGE) else "four" if times > 4 * (1 - EDGE) else "between"
    numbers = {"times": times, "before": before.total, "after": after.total}
    return Truth(right, ("twice", "between", "four"), numbers)


def single_key_head(before: Ledger, after: Ledger, dtype: str, batch: int, tokens: int) -> Truth | None:
    """Compares the KV cache of a text, in bytes, when one key head serves all query heads: a "part" (one of
    as many as there were key heads), "half" (the values stay as they were), or the "same" (the queries
    decide). None where there is one already, or no cache.
    """
    heads = before.config.n_kv_heads
    if heads < 2 or not kv_numbers(before.config):
        return None
    now, then = (costs.memory(dtype, batch, tokens).kv_cache for costs in (before, after))
    result = closest(then, {"part": now / heads, "half": (1 + 1 / heads) * now / 2, "same": float(now)})
    return result and Truth(result.right, result.offered, dict(result.numbers) | {"before": now})


def longer(ledger: Ledger, tokens: int) -> Truth:
    """Compares the work for a token after twice as long a text: "twice", the "same", or "between"."""
    now, then = (ledger.flops(count).forward for count in (tokens, 2 * tokens))
    times = then / now
    right = "same" if times < 1 + EDGE else "twice" if times > 2 * (1 - EDGE) else "between"
    return Truth(right, ("same", "between", "twice"), {"times": times, "before": now, "after": then})


def longer_cache(card: Card, tokens: int) -> Truth:
    """Compares the cache of a text twice as long: "twice", the "same", or "between"."""
    now, then = card.cache(tokens), card.cache(2 * tokens)
    times = then / now
    right = "same" if times < 1 + EDGE else "twice" if times > 2 * (1 - EDGE) else "between"
    return Truth(right, ("twice", "between", "same"), {"times": times, "before": now, "after": then})


def without_first(latest: float, with_first: float) -> Truth | None:
    """Compares what a cache of the latest positions alone costs, nats, with one of as many that holds the
    first ones: "less", "alike" up to twice as much, or "far" more. None where neither costs anything.
    """
    if min(latest, with_first) <= 0 or abs(latest - 2 * with_first) < EDGE * latest:
        return None
    right = "less" if latest < with_first else "alike" if latest <= 2 * with_first else "far"
    return Truth(right, ("less", "alike", "far"), {"latest": latest, "kept": with_first})
