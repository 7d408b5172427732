"""The KV cache: what it saves, what it takes, and why keys and values may be cached."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch

from engine.config import ModelConfig, ResolvedConfig, SampleConfig
from engine.data.progress import Progress, finish
from engine.data.progress import Steps as Measuring
from engine.errors import ConfigError
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.parts.registry import HEALTHY, Parts
from engine.recording import record
from engine.sample import Decoder, Drawn, steps
from engine.sample.decoder import Held
from studies.attention.ablation import Switches, edits_for
from studies.costs.cards.table import card_of
from studies.costs.ledger import kv_numbers, ledger

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float8": torch.float8_e4m3fn}


@dataclass(frozen=True)
class CacheStep:
    """One generated token, with and without the KV cache. `computed`: positions run with the cache; without
    it, all in view are run.
    """

    token: int
    token_without: int
    position: int  # of the token that was written, in the whole text
    begin: int  # first position that the model still sees
    computed: int
    refilled: bool  # the context was full: the cache was emptied, and the window's last half read again
    flops: int
    flops_without: int
    difference: float  # the largest one between the two steps' logits

    @property
    def computed_without(self) -> int:
        return self.position - self.begin


def compare(
    model: Transformer, ids: Sequence[int], length: int, sampling: SampleConfig
) -> tuple[CacheStep, ...]:
    """Writes `length` tokens after `ids` twice, with the cache and without. The model must be causal."""
    return finish(comparing(model, ids, length, sampling))


def comparing(
    model: Transformer, ids: Sequence[int], length: int, sampling: SampleConfig
) -> Measuring[tuple[CacheStep, ...]]:
    """Runs `compare` with a progress after each token."""
    both = (steps(model, ids, length, sampling, cached=cached) for cached in (True, False))
    pairs: list[CacheStep] = []
    for ours, other in zip(*both, strict=True):
        pairs.append(_pair(model, ours, other, refilled=bool(pairs) and ours.begin != pairs[-1].begin))
        yield Progress(len(pairs), length)
    return tuple(pairs)


def _pair(model: Transformer, ours: Drawn, other: Drawn, *, refilled: bool) -> CacheStep:
    sees = ours.position - ours.begin
    return CacheStep(
        ours.token,
        other.token,
        ours.position,
        ours.begin,
        ours.computed,
        refilled,
        flops(model.config, ours.computed, sees, model.parts),
        flops(model.config, other.computed, sees, model.parts),
        float((ours.logits - other.logits).abs().max()),
    )


def flops(config: ModelConfig, computed: int, seen: int, parts: Parts = HEALTHY) -> int:
    """Returns the floating-point operations for `computed` positions that see `seen`: the ledger's products.

    >>> c = ModelConfig(vocab_size=65, d_model=128, n_layers=4, n_heads=4)
    >>> flops(c, 64, 64) == 64 * flops(c, 1, 64)
    True
    """
    return computed * ledger(config, parts=parts).flops(seen).forward


@dataclass(frozen=True)
class CacheSize:
    """A cache of `tokens` positions: the formula's bytes, and those of the engine's tensor."""

    config: ResolvedConfig
    tokens: int
    dtype: str
    shape: tuple[int, ...]  # layer, key or value, batch, kv_head, position, d_head
    tensor: int
    parts: Parts = HEALTHY

    @property
    def formula(self) -> int:
        """Bytes: layers * numbers of the mixer (2 * kv_heads * d_head) * T * bytes of a number."""
        return kv_numbers(self.config, parts=self.parts) * self.tokens * DTYPES[self.dtype].itemsize

    @property
    def numbers(self) -> str:
        return f"{self.each} · {self.tokens:,} · {DTYPES[self.dtype].itemsize}"

    @property
    def each(self) -> str:
        """The numbers per token, as a product."""
        c, kept = self.config, card_of(self.parts.mixer(self.config)).cached_numbers(self.config)
        by_head = kept == 2 * c.n_kv_heads * c.d_head
        return f"{c.n_layers} · " + (f"2 · {c.n_kv_heads} · {c.d_head}" if by_head else f"{kept:,}")


def cache_size(
    config: ModelConfig,
    tokens: int,
    dtype: str = "float32",
    kv_heads: int | None = None,
    parts: Parts = HEALTHY,
) -> CacheSize:
    """Returns the cache of a configuration, with another number of key-value heads if given.

    Raises ConfigError for a number of kv_heads that does not divide the heads.

    >>> c = ModelConfig(vocab_size=65, d_model=128, n_layers=4, n_heads=4)
    >>> [cache_size(c, 64, "float32", n).tensor for n in (4, 2, 1)]
    [262144, 131072, 65536]
    """
    resolved = (config if kv_heads is None else replace(config, n_kv_heads=kv_heads)).validate().resolved()
    held = KVCache(resolved, tokens, torch.empty(0, dtype=DTYPES[dtype], device="meta")).held
    return CacheSize(resolved, tokens, dtype, tuple(held.shape), held.nbytes, parts)


@torch.inference_mode()
def filled_bytes(model: Transformer, ids: Sequence[int]) -> tuple[int, int]:
    """Reads ids as generation does: bytes of the filled part of its cache, and of the whole."""
    decoder = Decoder(model)
    decoder.read(ids)
    cache = decoder.cache
    return cache.held[..., : cache.length, :].numel() * cache.held.element_size(), cache.held.nbytes


@dataclass(frozen=True, eq=False)
class CacheStability:
    """The largest change of any earlier key and value by one more token, by layer; and their largest."""

    keys: np.ndarray  # (layer,)
    values: np.ndarray  # (layer,)
    largest: float

    @property
    def most(self) -> float:
        return float(max(self.keys.max(), self.values.max()))

    @property
    def layers(self) -> int:
        return len(self.keys)

    @property
    def first(self) -> float:
        """The largest change in layer 0, whose keys and values come from each token's own embedding."""
        return float(max(self.keys[0], self.values[0]))


def unchanged(model: Transformer, ids: Sequence[int], *, mask: bool = True) -> CacheStability:
    """Compares keys (as cached: turned by position) and values of `ids` without the last one and with it,
    under the causal mask or not. At least two ids, at most the context. The model must have a mixer.
    """
    before, after = (
        record(
            model, part, edits=None if mask else edits_for(model, Switches(mask=False)), only={"k_rot", "v"}
        )
        for part in (ids[:-1], ids)
    )
    earlier = len(ids) - 1
    changes = [
        np.abs(after.stacked(name)[:, :, :earlier] - before.stacked(name)).max(axis=(1, 2, 3))
        for name in ("k_rot", "v")
    ]
    return CacheStability(
        changes[0], changes[1], float(max(np.abs(before.stacked(name)).max() for name in ("k_rot", "v")))
    )


@dataclass(frozen=True)
class Speed:
    """Tokens a second, medians over `blocks` of each kind in turns, each writing `tokens` after one."""

    tokens: int
    blocks: int
    cached: float
    uncached: float
    ratio: float  # of the two, the median over pairs of blocks
    work: float  # the same ratio if time were FLOPs


def speed(model: Transformer, tokens: int, seconds: float = 1.0) -> Speed:
    """Measures on this machine, now. `tokens` is cut to what is written without a cache in a third of
    `seconds`; no new blocks begin after them. At most the context.
    """
    tokens = min(tokens, model.config.context)
    start = time.perf_counter()
    written = 0
    for _ in steps(model, [0], tokens, cached=False):
        written += 1
        if time.perf_counter() - start > seconds / 3:
            break
    times: list[tuple[float, float]] = []
    held = Held(model)  # its matrices are laid out before the clock runs, as for whoever writes for long
    _block(model, min(8, written), held)  # the first steps of a kind are slow
    while not times or time.perf_counter() - start < seconds:
        times.append((_block(model, written, held), _block(model, written, None)))
    cached, uncached = (written / statistics.median(column) for column in zip(*times, strict=True))
    lengths = range(1, written + 1)
    all_flops, last_flops = (
        sum(flops(model.config, n if whole else 1, n, model.parts) for n in lengths)
        for whole in (True, False)
    )
    return Speed(
        written,
        len(times),
        cached,
        uncached,
        statistics.median(b / a for a, b in times),
        all_flops / last_flops,
    )


def _block(model: Transformer, tokens: int, held: Held | None) -> float:
    """Returns the seconds to write `tokens`; without a cache where there is none to fill."""
    start = time.perf_counter()
    for _ in steps(model, [0], tokens, SampleConfig(temperature=0.8), cached=held is not None, held=held):
        pass
    return time.perf_counter() - start


Family = Literal["MHA", "GQA", "MQA"]
SHARED = 8  # key-value heads that models after MHA chose (LLaMA-2 70B, LLaMA-3, Mistral)


@dataclass(frozen=True, eq=False)
class Totals:
    """The sums over both generations. Arrays are (step,); FLOPs are whole numbers."""

    cached: np.ndarray = field(repr=False)
    uncached: np.ndarray = field(repr=False)
    cached_sum: np.ndarray = field(repr=False)  # up to each step, that one included
    uncached_sum: np.ndarray = field(repr=False)
    refilled: np.ndarray = field(repr=False)
    same: int  # steps in which both wrote the same token
    difference: float  # the largest one between two logits of one step

    @property
    def times(self) -> float:
        """The factor of FLOPs without the cache, in all."""
        return float(self.uncached_sum[-1] / self.cached_sum[-1])

    @property
    def times_last(self) -> float:
        """The factor of the last step."""
        return float(self.uncached[-1] / self.cached[-1])


def totals(pairs: Sequence[CacheStep]) -> Totals:
    """Sums at least one step."""
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


def first_refill(pairs: Sequence[CacheStep]) -> tuple[int, int] | None:
    """Returns the first step that met a full context, and the position at 0 from there; or None."""
    step = next((i for i, pair in enumerate(pairs) if pair.refilled), None)
    return None if step is None else (step, pairs[step].begin - pairs[step - 1].begin)


def family(kv_heads: int, heads: int) -> Family:
    """Names multi-head, grouped-query (Ainslie et al. 2023) or multi-query attention (Shazeer 2019).

    >>> family(8, 8), family(2, 8), family(1, 8), family(1, 1)
    ('MHA', 'GQA', 'MQA', 'MHA')
    """
    return "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"


def divisors(heads: int) -> list[int]:
    """Returns every number of key-value heads that as many query heads can share evenly.

    >>> divisors(12)
    [12, 6, 4, 3, 2, 1]
    """
    return [n for n in range(heads, 0, -1) if heads % n == 0]


@dataclass(frozen=True)
class Sharing:
    """A cache for every number of key-value heads that a model could have, the most heads first."""

    heads: int  # of queries
    model_heads: int  # key-value heads that the model has
    sizes: dict[int, CacheSize]  # key-value heads -> cache

    def saved(self, kv_heads: int) -> float:
        """Returns how many times smaller it is than with the most heads."""
        return next(iter(self.sizes.values())).formula / self.sizes[kv_heads].formula


def can_share(config: ModelConfig) -> bool:
    """True if the query heads of a configuration may read the same keys and values."""
    try:
        replace(config.resolved(), n_kv_heads=1).validate()
    except ConfigError:
        return False
    return True


def sharing(config: ModelConfig, tokens: int, dtype: str, parts: Parts = HEALTHY) -> Sharing:
    """Returns caches of `tokens` positions, for every number of key-value heads that the mixer may have."""
    c = config.resolved()
    ways = divisors(c.n_heads) if can_share(c) else [c.n_kv_heads]
    return Sharing(c.n_heads, c.n_kv_heads, {n: cache_size(c, tokens, dtype, n, parts) for n in ways})


def by_family(config: ModelConfig, tokens: int, dtype: str) -> dict[Family, int]:
    """Returns the bytes of a cache by way of sharing; grouped: the model's own, else SHARED heads."""
    c = config.resolved()
    shared = c.n_kv_heads if c.n_kv_heads < c.n_heads else SHARED
    ways: dict[Family, int] = {"MHA": c.n_heads, "GQA": shared, "MQA": 1}
    return {way: cache_size(c, tokens, dtype, n).formula for way, n in ways.items()}
