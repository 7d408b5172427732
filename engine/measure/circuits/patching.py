"""Activation patching: a piece of one run is put into another, and what that restores is measured.

Meng et al. 2022 ("Locating and editing factual associations in GPT", causal tracing), Wang et al. 2023 (the
circuit that names the indirect object), Zhang and Nanda 2024 (which metric, which corruption).

Nothing is computed twice. Blocks below the patch, and under a causal mask positions before it, are as they
were in the corrupted run: a patched copy joins at its own block, with the keys and values of the positions
before it, and all copies that start at one position climb the model together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.data.progress import Progress, Steps
from engine.errors import ConfigError, ShapeError
from engine.measure.circuits.prompt_pairs import (
    Contrast,
    Prompts,
    Runs,
    both_runs,
    difference,
)
from engine.measure.recording import check_climbs
from engine.model import Transformer
from engine.parts.cache import LayerCache
from engine.parts.protocols import Parts
from engine.probe import Patcher

Site = Literal["resid_pre", "attn_out", "ffn_out", "z"]
MEMORY = 256 << 20  # bytes that the copies of one climb may take


@dataclass(frozen=True, eq=False)
class Patching:
    """`restored` is (patched - corrupted) / (clean - corrupted): 0 where a patch changes nothing, 1 where it
    brings the whole answer back. (layer, query), or of `z` (layer, head).
    """

    site: Site
    restored: np.ndarray
    contrast: Contrast


def sites(config: ResolvedConfig, parts: Parts) -> tuple[Site, ...]:
    """What this model has to be patched: heads write z wherever there is a mixer."""
    mixes, thinks = parts.mixer(config).present, parts.feedforward(config).present
    found: tuple[tuple[Site, bool], ...] = (
        ("resid_pre", True),
        ("attn_out", mixes),
        ("ffn_out", thinks),
        ("z", mixes),
    )
    return tuple(site for site, there in found if there)


@torch.inference_mode()
def patch(model: Transformer, prompts: Prompts, site: Site) -> Steps[Patching]:
    """Every block's `site`, one token at a time, from the clean run into the corrupted one; of `z` every
    head, at all positions at once. A piece of work is one token through one block.

    Raises ConfigError where the model has no such activation, and what `both_runs` raises; ShapeError where
    both prompts have the same answer, to the last digit.
    """
    check_climbs(model.parts)
    if site not in sites(model.config, model.parts):
        raise ConfigError("site", site, "this model has no such activation, so there is nothing to put in")
    runs = both_runs(model, prompts, site)
    span = runs.contrast.span
    if not span or not math.isfinite(span):
        raise ShapeError("the model answers both prompts alike, to the last digit: nothing is to be restored")
    length, layers = len(prompts.clean), model.config.n_layers
    places = model.config.n_heads if site == "z" else length
    restored = np.zeros((layers, places), np.float32)  # before the first change nothing can differ
    climbs = [
        Climb(start, group)
        for start, cells in _cells(model, prompts, site)
        for group in _groups(cells, most_copies(model.config, length, length - start))
    ]
    total = sum(climb.work(layers, length) for climb in climbs)
    done = 0
    for climb in climbs:
        copies = _Copies(model, runs, site, climb)
        for layer in range(climb.cells[0][0], layers):
            copies.rise(layer)
            done += copies.x.shape[0] * copies.x.shape[1]
            yield Progress(done, total)
        restored[tuple(np.array(climb.cells).T)] = copies.restored()
    restored.flags.writeable = False
    return Patching(site, restored, runs.contrast)


Cell = tuple[int, int]  # (layer, position), or (layer, head)


@dataclass(frozen=True)
class Climb:
    """Copies of the corrupted run from position `start` on, one for each of `cells`, in the order of their
    blocks.
    """

    start: int
    cells: tuple[Cell, ...]

    def at(self, layer: int) -> list[int]:
        """The places of the copies that join at a block."""
        return [place for own, place in self.cells if own == layer]

    def work(self, layers: int, length: int) -> int:
        return sum(layers - layer for layer, _ in self.cells) * (length - self.start)


def _cells(model: Transformer, prompts: Prompts, site: Site) -> list[tuple[int, list[Cell]]]:
    """(where the copies begin, their cells). What comes before the first change is the same in both runs:
    under a causal mask nothing there can restore anything.
    """
    layers, length = range(model.config.n_layers), len(prompts.clean)
    first = prompts.changed[0] if model.can_cache else 0
    if site == "z":
        return [(first, [(layer, head) for layer in layers for head in range(model.config.n_heads)])]
    if not model.can_cache:
        return [(0, [(layer, place) for layer in layers for place in range(length)])]
    return [(place, [(layer, place) for layer in layers]) for place in range(first, length)]


def _groups(cells: Sequence[Cell], most: int) -> list[tuple[Cell, ...]]:
    return [tuple(cells[i : i + most]) for i in range(0, len(cells), most)]


def most_copies(config: ResolvedConfig, keys: int, queries: int) -> int:
    """How many copies of `queries` positions may climb at once within MEMORY: what one block holds at a time,
    float32, rounded up.
    """
    heads = (config.n_heads + 2 * config.n_kv_heads) * config.d_head
    each = 6 * config.d_model + 4 * config.d_ff + 4 * heads + 4 * config.n_heads * keys
    kept = 2 * config.n_kv_heads * config.d_head * keys
    return max(1, MEMORY // (4 * (each * queries + kept)))


class _Copies:
    """The copies of one climb, (copy, query, d_model), on their way up."""

    def __init__(self, model: Transformer, runs: Runs, site: Site, climb: Climb) -> None:
        self.model, self.runs, self.site, self.climb = model, runs, site, climb
        own = runs.of_corrupted[0][climb.start :]  # (query, d_model)
        self.x = own.expand(0, -1, -1)
        self.hooks = model.hooks(len(own), own, climb.start)
        self.mask = model.mask(len(own), own, climb.start)

    def rise(self, layer: int) -> None:
        """Through one block, with those that join there: they are patched in it."""
        places, before = self.climb.at(layer), len(self.x)
        own = self.runs.of_corrupted[layer][self.climb.start :]
        x = torch.cat((self.x, own.expand(len(places), -1, -1)))
        clean = self.runs.of_clean[layer]

        def put(value: Tensor) -> Tensor:
            value = value.clone()
            for copy, place in enumerate(places, before):
                if self.site == "z":  # value (copy, head, query, d_head)
                    value[copy, place] = clean[place, self.climb.start :]
                else:  # value (copy, query, d_model)
                    value[copy, place - self.climb.start] = clean[place]
            return value

        probe = Patcher({self.site: put} if places else {})
        self.x = self.model.blocks[layer](x, self.hooks, self.mask, probe, self._cache(layer, len(x)))

    def _cache(self, layer: int, copies: int) -> LayerCache | None:
        """The keys and values before the copies begin: those of the corrupted run."""
        if self.runs.cache is None or not self.climb.start:
            return None
        kept = self.runs.cache.held[layer].expand(-1, copies, -1, -1, -1)  # (2, copy, kv_head, key, d_head)
        return LayerCache(kept.clone(), self.climb.start)

    def restored(self) -> np.ndarray:
        """(copy,)"""
        normed = self.model.norm_final(self.x[:, -1:])[:, 0]
        found = difference(self.model, normed, self.runs.prompts.answers)
        told = self.runs.contrast
        share: np.ndarray = ((found - told.corrupted) / told.span).cpu().numpy()
        return share
