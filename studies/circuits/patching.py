"""Activation patching: a piece of one run is put into another, and what that restores is measured.

Meng et al. 2022 (causal tracing), Wang et al. 2023 (the circuit that names the indirect object), Zhang and
Nanda 2024 (which metric, which corruption).

Nothing is computed twice: a patched copy joins the corrupted run at its own block, with the keys and values
of the positions before it, and all copies that start at one position pass the blocks together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.config import ResolvedConfig
from engine.data.progress import Progress, Steps
from engine.errors import ConfigError, ShapeError
from engine.model import Transformer, mask_of
from engine.parts.blocks import PassContext
from engine.parts.cache import KVCache
from engine.parts.registry import Parts
from engine.probe import Patcher
from engine.recording import check_plain_stack
from studies.circuits.prompt_pairs import Contrast, Prompts, Runs, both_runs, difference

Site = Literal["resid_pre", "attn_out", "ffn_out", "z"]
MEMORY = 256 << 20  # bytes that the copies of one copy_group may take


@dataclass(frozen=True, eq=False)
class Patching:
    """The `restored` share, (patched - corrupted) / (clean - corrupted): 0 where a patch changes nothing, 1
    where it brings the whole answer back. (layer, query), or of `z` (layer, head).
    """

    site: Site
    restored: np.ndarray
    contrast: Contrast

    def strongest_in(self, row: int) -> int:
        """Returns the column of a row in which most is restored; of equal ones the first."""
        return int(self.restored[row].argmax())


def sites(config: ResolvedConfig, parts: Parts) -> tuple[Site, ...]:
    """Returns the activations of this model that can be patched."""
    mixes, thinks = parts.mixer(config).present, parts.feedforward(config).present
    result: tuple[tuple[Site, bool], ...] = (
        ("resid_pre", True),
        ("attn_out", mixes),
        ("ffn_out", thinks),
        ("z", mixes),
    )
    return tuple(site for site, there in result if there)


@torch.inference_mode()
def patch(model: Transformer, prompts: Prompts, site: Site) -> Steps[Patching]:
    """Puts every block's `site`, one token at a time, from the clean run into the corrupted one; of `z` every
    head, at all positions at once. A piece of work is one token through one block.

    Raises ConfigError where the model has no such activation, and what `both_runs` raises; ShapeError where
    both prompts have the same answer, to the last digit.
    """
    check_plain_stack(model.parts)
    if site not in sites(model.config, model.parts):
        raise ConfigError("site", site, "this model has no such activation, so there is nothing to put in")
    runs = both_runs(model, prompts, site)
    span = runs.contrast.span
    if not span or not math.isfinite(span):
        raise ShapeError("the model answers both prompts alike, to the last digit: nothing is to be restored")
    length, layers = len(prompts.clean), model.config.n_layers
    places = model.config.n_heads if site == "z" else length
    restored = np.zeros((layers, places), np.float32)  # before the first change nothing can differ
    copy_groups = [
        CopyGroup(start, group)
        for start, cells in _cells(model, prompts, site)
        for group in _groups(cells, most_copies(model.config, length, length - start))
    ]
    total = sum(copy_group.work(layers, length) for copy_group in copy_groups)
    done = 0
    for copy_group in copy_groups:
        copies = _Copies(model, runs, site, copy_group)
        for layer in range(copy_group.cells[0][0], layers):
            copies.rise(layer)
            done += copies.x.shape[0] * copies.x.shape[1]
            yield Progress(done, total)
        restored[tuple(np.array(copy_group.cells).T)] = copies.restored()
    restored.flags.writeable = False
    return Patching(site, restored, runs.contrast)


Cell = tuple[int, int]  # (layer, position), or (layer, head)


@dataclass(frozen=True)
class CopyGroup:
    """Copies of the corrupted run from position `start` on, one for each of `cells`, by block."""

    start: int
    cells: tuple[Cell, ...]

    def at(self, layer: int) -> list[int]:
        """Returns the cells' positions or heads that join at a block."""
        return [place for own, place in self.cells if own == layer]

    def work(self, layers: int, length: int) -> int:
        return sum(layers - layer for layer, _ in self.cells) * (length - self.start)


def _cells(model: Transformer, prompts: Prompts, site: Site) -> list[tuple[int, list[Cell]]]:
    """Returns (first position, cells) of each group; causally nothing before the first change."""
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
    """Returns how many copies of `queries` positions fit into MEMORY: one block's float32 tensors."""
    heads = (config.n_heads + 2 * config.n_kv_heads) * config.d_head
    each = 6 * config.d_model + 4 * config.d_ff + 4 * heads + 4 * config.n_heads * keys
    kept = 2 * config.n_kv_heads * config.d_head * keys
    return max(1, MEMORY // (4 * (each * queries + kept)))


class _Copies:
    """The copies of one group, (copy, query, d_model)."""

    def __init__(self, model: Transformer, runs: Runs, site: Site, copy_group: CopyGroup) -> None:
        self.model, self.runs, self.site, self.copy_group = model, runs, site, copy_group
        own = runs.of_corrupted[0][copy_group.start :]  # (query, d_model)
        self.x = own.expand(0, -1, -1)
        self.context = PassContext(
            model.hooks(len(own), own, copy_group.start), model.mask(len(own), own, copy_group.start)
        )

    def rise(self, layer: int) -> None:
        """Passes one block; those that join there are patched in it."""
        places, before = self.copy_group.at(layer), len(self.x)
        own = self.runs.of_corrupted[layer][self.copy_group.start :]
        x = torch.cat((self.x, own.expand(len(places), -1, -1)))
        clean = self.runs.of_clean[layer]

        def put(value: Tensor) -> Tensor:
            value = value.clone()
            for copy, place in enumerate(places, before):
                if self.site == "z":  # value (copy, head, query, d_head)
                    value[copy, place] = clean[place, self.copy_group.start :]
                else:  # value (copy, query, d_model)
                    value[copy, place - self.copy_group.start] = clean[place]
            return value

        probe = Patcher({self.site: put} if places else {})
        context = self.context._replace(probe=probe, cache=self._cache(layer, len(x)))
        self.x = self.model.blocks[layer](x, context)

    def _cache(self, layer: int, copies: int) -> KVCache | None:
        """Returns the corrupted run's keys and values from before the copies begin."""
        if self.runs.cache is None or not self.copy_group.start:
            return None
        kept = self.runs.cache.held[layer].expand(-1, copies, -1, -1, -1)  # (2, copy, kv_head, key, d_head)
        return KVCache.holding(kept.clone()[None], self.copy_group.start)

    def restored(self) -> np.ndarray:
        """Returns the restored share of each copy, (copy,)."""
        normed = self.model.norm_final(self.x[:, -1:])[:, 0]
        gap = difference(self.model, normed, self.runs.prompts.answers)
        contrast = self.runs.contrast
        return ((gap - contrast.corrupted) / contrast.span).cpu().numpy()


# The causal cone: what an edit can reach at all -----------------------------------------------------

Spread = Literal["later", "window", "everywhere", "nowhere", "heads"]


@dataclass(frozen=True, eq=False)
class CausalCone:
    """The cells that an edit at `cell` can change at all, itself included: `reached` (layer, query) bool, or
    of `z`, edited at every position at once, (layer, head). `spread` is how mixers carry it on.
    """

    cell: Cell
    reached: np.ndarray
    spread: Spread

    @property
    def others(self) -> int:
        """The number of cells beside the edited one that are reached."""
        return int(self.reached.sum()) - 1


def visible_keys(model: Transformer, layer: int, length: int) -> np.ndarray:
    """Returns which keys each query of a layer reads, (query, key) bool, from the model's mask; no key where
    it has no mixer, and every key where it has no mask, or a mixer past which a causal mask does not hold.
    """
    mixer = model.parts.mixer(model.config)
    if not mixer.present:
        return np.zeros((length, length), bool)
    if not mixer.cacheable:
        return np.ones((length, length), bool)
    own = replace(model.config, window=model.config.windows[layer], global_every=0)
    mask = mask_of(own, model.parts, length, torch.zeros(1))
    return np.ones((length, length), bool) if mask is None else np.isfinite(mask.numpy())


def causal_cone(model: Transformer, site: Site, cell: Cell, length: int) -> CausalCone:
    """Returns the causal cone of an edit of `site` at `cell`, (layer, position) or (layer, head), in a text
    of `length` tokens.

    Attention carries a change to the queries that see its position, the feed-forward network nowhere else:
    the cone follows from the mask and the wiring alone, whatever the weights are.
    """
    if site == "z":  # heads of one block run side by side
        heads = np.zeros((model.config.n_layers, model.config.n_heads), bool)
        heads[cell] = True
        heads[cell[0] + 1 :] = True
        return CausalCone(cell, heads, "heads")
    wiring, thinks = model.parts.wiring(model.config), model.parts.feedforward(model.config).present
    reached = np.zeros((model.config.n_layers, length), bool)
    read = np.zeros((length, length), bool)  # by any of these layers
    edited, stream = np.arange(length) == cell[1], np.zeros(length, bool)  # (query,)
    for layer in range(cell[0], model.config.n_layers):
        reads = visible_keys(model, layer, length)
        read |= reads
        at = site if layer == cell[0] else None
        stream = edited if at == "resid_pre" else stream
        attention = edited if at == "attn_out" else np.any(reads & stream, axis=1)
        middle = attention if wiring.replaces and reads.any() else stream | attention
        network = edited if at == "ffn_out" else stream if wiring.parallel else middle
        reached[layer] = {"resid_pre": stream, "attn_out": attention, "ffn_out": network}[site]
        stream = (network if wiring.replaces else middle | network) if thinks else middle
    return CausalCone(cell, reached, _spread(read))


def _spread(reads: np.ndarray) -> Spread:
    """Names how mixers that read (query, key) carry a change."""
    if np.triu(reads, 1).any():
        return "everywhere"
    if not reads.any():
        return "nowhere"
    return "later" if reads[-1].all() else "window"


HALF = 0.5  # of the answer: what holds more of it than all others together
SMALL = 1.0  # nats: prompts whose answers differ by less hardly tell them apart


Verdict = Literal["tells", "hardly", "swapped", "always first", "always second"]


def verdict(contrast: Contrast) -> Verdict:
    """Says whether the two prompts bring out the two answers at all."""
    if contrast.span <= -SMALL:
        return "swapped"
    if contrast.span < SMALL:
        return "hardly"
    if contrast.clean <= 0.0:
        return "always second"
    return "always first" if contrast.corrupted >= 0.0 else "tells"


@dataclass(frozen=True)
class Station:
    """A token that holds the answer in blocks `first` to `last`, both included. `position` is None where no
    token holds half of it. `least` and `most` are the shares restored there.
    """

    position: int | None
    first: int
    last: int
    least: float
    most: float


def stations(patching: Patching) -> tuple[Station, ...]:
    """Returns the token whose patch restores most in each block, bottom first, equals joined."""
    shares = patching.restored
    best = shares.argmax(1)
    top = shares[np.arange(len(best)), best]
    holders = [int(p) if share >= HALF else None for p, share in zip(best, top, strict=True)]
    edges = [0, *(i for i in range(1, len(holders)) if holders[i] != holders[i - 1]), len(holders)]
    return tuple(
        Station(holders[a], a, b - 1, float(top[a:b].min()), float(top[a:b].max()))
        for a, b in pairwise(edges)
    )


@dataclass(frozen=True)
class PatchEffect:
    """One patch: its block, its position or head, and the share that it restores."""

    layer: int
    index: int
    share: float


def strongest_patches(patching: Patching, count: int = 3) -> tuple[PatchEffect, ...]:
    """Returns the patches that restore most, best first; of equal ones the lowest block."""
    order = np.argsort(-patching.restored, axis=None, kind="stable")[:count]
    return tuple(
        PatchEffect(int(layer), int(place), float(patching.restored[layer, place]))
        for layer, place in zip(*np.unravel_index(order, patching.restored.shape), strict=True)
    )
