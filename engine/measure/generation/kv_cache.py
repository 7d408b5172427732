"""What a KV cache saves, what it takes, and why it may be kept: the same text written with and without it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from engine.config import ModelConfig, ResolvedConfig, SampleConfig
from engine.data.progress import Progress, finish
from engine.data.progress import Steps as Measuring
from engine.ledger import kv_numbers, ledger
from engine.measure.attention.ablation import Switches, edits_for
from engine.measure.recording import record
from engine.model import Transformer
from engine.parts.cache import KVCache
from engine.parts.protocols import Parts
from engine.parts.registry import HEALTHY
from engine.sample import Decoder, Drawn, steps
from engine.sample.decoder import Held

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float8": torch.float8_e4m3fn}


@dataclass(frozen=True)
class Pair:
    """One step of both generations. With the cache, `computed` positions pass through the model; without it,
    all that it sees.
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

    @property
    def kept(self) -> int:
        """Positions whose keys and values the cache holds after the step. The token just written is not among
        them: nobody has read it yet.
        """
        return self.position - self.begin


def compare(model: Transformer, ids: Sequence[int], length: int, sampling: SampleConfig) -> tuple[Pair, ...]:
    """Writes `length` tokens after `ids` twice, with the cache and without. The model must be causal."""
    return finish(comparing(model, ids, length, sampling))


def comparing(
    model: Transformer, ids: Sequence[int], length: int, sampling: SampleConfig
) -> Measuring[tuple[Pair, ...]]:
    """The same, with a progress after each token."""
    both = (steps(model, ids, length, sampling, cached=cached) for cached in (True, False))
    pairs: list[Pair] = []
    for ours, other in zip(*both, strict=True):
        pairs.append(_pair(model, ours, other, refilled=bool(pairs) and ours.begin != pairs[-1].begin))
        yield Progress(len(pairs), length)
    return tuple(pairs)


def _pair(model: Transformer, ours: Drawn, other: Drawn, *, refilled: bool) -> Pair:
    sees = ours.position - ours.begin
    return Pair(
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
    """Floating-point operations for `computed` positions, each of which is compared with all `seen` ones: the
    ledger's products.

    >>> c = ModelConfig(vocab_size=65, d_model=128, n_layers=4, n_heads=4)
    >>> flops(c, 64, 64) == 64 * flops(c, 1, 64)
    True
    """
    return computed * ledger(config, parts=parts).flops(seen).forward


@dataclass(frozen=True)
class CacheSize:
    """A cache of `tokens` positions: what the formula gives, and the bytes of the tensor that the engine
    makes for it.
    """

    config: ResolvedConfig
    tokens: int
    dtype: str
    shape: tuple[int, ...]  # layer, key or value, batch, kv_head, position, d_head
    tensor: int
    parts: Parts = HEALTHY

    @property
    def formula(self) -> int:
        """layers * numbers that the mixer keeps (2 * kv_heads * d_head) * T * bytes of a number."""
        return kv_numbers(self.config, parts=self.parts) * self.tokens * DTYPES[self.dtype].itemsize

    @property
    def numbers(self) -> str:
        return f"{self.each} · {self.tokens:,} · {DTYPES[self.dtype].itemsize}"

    @property
    def each(self) -> str:
        """The numbers that are kept for each token, as a product."""
        c, kept = self.config, self.parts.mixer(self.config).cached(self.config)
        by_head = kept == 2 * c.n_kv_heads * c.d_head
        return f"{c.n_layers} · " + (f"2 · {c.n_kv_heads} · {c.d_head}" if by_head else f"{kept:,}")


def cache_size(
    config: ModelConfig,
    tokens: int,
    dtype: str = "float32",
    kv_heads: int | None = None,
    parts: Parts = HEALTHY,
) -> CacheSize:
    """The cache of a configuration, with another number of key-value heads if given. The tensor is made
    without memory, on the meta device.

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
    """Reads the ids as generation does: (bytes of the part of its cache that is filled, bytes of the whole
    tensor, which has some room left and doubles when it is full).
    """
    decoder = Decoder(model)
    decoder.read(ids)
    cache = decoder.cache
    return cache.held[..., : cache.length, :].numel() * cache.held.element_size(), cache.held.nbytes


@dataclass(frozen=True, eq=False)
class Unchanged:
    """Largest change of any earlier key and value as one more token comes, by layer; and the largest key and
    value there are.
    """

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
        """In layer 0, whose keys and values come from each token's own embedding."""
        return float(max(self.keys[0], self.values[0]))


def unchanged(model: Transformer, ids: Sequence[int], *, mask: bool = True) -> Unchanged:
    """Keys (as they are kept: turned by position) and values of `ids` without the last one, and with it; the
    causal mask on or off.

    At least two ids, at most the context. The model must have a mixer.
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
    return Unchanged(
        changes[0], changes[1], float(max(np.abs(before.stacked(name)).max() for name in ("k_rot", "v")))
    )


@dataclass(frozen=True)
class Speed:
    """Tokens a second, medians over `blocks` of each kind that took turns, every block writing `tokens` after
    one.
    """

    tokens: int
    blocks: int
    cached: float
    uncached: float
    ratio: float  # of the two, the median over pairs of blocks
    work: float  # the same ratio if time were FLOPs


def speed(model: Transformer, tokens: int, seconds: float = 1.0) -> Speed:
    """Measures on this machine, now. `tokens` is cut to what is written without a cache in a third of
    `seconds`; no new pair of blocks begins after them.

    At most the context: a window that moves would be measured as well.
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
    every, one = (
        sum(flops(model.config, n if whole else 1, n, model.parts) for n in lengths)
        for whole in (True, False)
    )
    return Speed(
        written, len(times), cached, uncached, statistics.median(b / a for a, b in times), every / one
    )


def _block(model: Transformer, tokens: int, held: Held | None) -> float:
    """Seconds to write `tokens`; without a cache where nothing is held."""
    start = time.perf_counter()
    for _ in steps(model, [0], tokens, SampleConfig(temperature=0.8), cached=held is not None, held=held):
        pass
    return time.perf_counter() - start
