"""What is read off the gradient highway: what becomes of the gradient on its way back, why it is not what
theory expects, and what Xiong et al. prove of the last block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.config import ModelConfig, Wiring
from engine.measure.residual.gradient_by_depth import Plan, Profile, ratio
from engine.parts.cards.norms import NORM_CARDS

Means = Mapping[tuple[Wiring, int], np.ndarray]  # (wiring, depth) -> one number for each place
Fate = Literal["not finite", "zero", "zero at the last", "zero at the first", "flat", "fades", "vanishes"]
Growth = Literal["grows", "explodes"]
Reason = Literal[
    "no norm", "stream grows", "saturates", "as pre-norm", "own paths", "small writes", "restored", "epsilon"
]
FLAT = 3.0  # a ratio within this factor of 1 is called flat
FAR = 100.0  # a ratio beyond this factor vanishes or explodes; a nearer one fades or grows
EPS = ModelConfig.norm_eps  # of the measured models


def blocks_of(values: np.ndarray, depth: int) -> np.ndarray:
    """One number for each block (depth,): what stands before the first block, where it was measured too, is
    left out.
    """
    return values[-depth:]


def unusable(profiles: Sequence[Profile]) -> int:
    """How many models gave numbers that are not finite."""
    return sum(not profile.finite for profile in profiles)


def ratios(means: Means, wiring: Wiring, depths: Sequence[int]) -> np.ndarray:
    """First block over last, for each of the depths at which the wiring was measured so far."""
    there = [depth for depth in depths if (wiring, depth) in means]
    return np.array([ratio(blocks_of(means[wiring, depth], depth)) for depth in there])


@dataclass(frozen=True)
class Road:
    """What the gradient does from the last block to the first. `ratio` is first over last; `reached` of
    `blocks` get any at all.
    """

    fate: Fate | Growth
    ratio: float
    reached: int
    blocks: int


def road(blocks: np.ndarray) -> Road:
    """The verdict on gradients (block,).

    >>> road(np.array([1e-6, 1.0])).fate, road(np.array([2.0, 1.0])).fate
    ('vanishes', 'flat')
    """
    found = ratio(blocks) if np.isfinite(blocks).all() else math.inf
    return Road(_fate(blocks, found), found, int((blocks > 0).sum()), len(blocks))


def _fate(blocks: np.ndarray, found: float) -> Fate | Growth:
    if not np.isfinite(blocks).all():
        return "not finite"
    if blocks[-1] == 0:
        return "zero at the last" if blocks.any() else "zero"
    if found == 0:
        return "zero at the first"
    if 1 / FLAT <= found <= FLAT:
        return "flat"
    if found < 1:
        return "vanishes" if found < 1 / FAR else "fades"
    return "explodes" if found > FAR else "grows"


def reason(plan: Plan, wiring: Wiring, blocks: np.ndarray, lengths: np.ndarray) -> Reason | None:
    """Why what was seen is not what theory says, or where a reason can be seen; None where there is nothing
    to explain. `blocks`: gradients (block,), `lengths`: norm of the stream (block,).
    """
    found = ratio(blocks) if np.isfinite(blocks).all() else math.inf
    flat = 1 / FLAT <= found <= FLAT
    norm = NORM_CARDS[plan.norm]
    bare = not norm.present
    if wiring == "pre" and not flat:
        return "stream grows" if norm.divides else "no norm" if bare else "saturates"
    if wiring == "post" and bare:
        return "as pre-norm"
    if wiring == "post" and not found < 1 / FLAT:
        return "own paths" if plan.init == "fan_in" else "small writes"
    if wiring == "none" and norm.divides:
        if flat:
            return "restored"
        if (lengths**2 / plan.d_model < EPS).any():
            return "epsilon"
    return None


@dataclass(frozen=True)
class LastBlock:
    """How the gradient of the last block's weights changes from models of `least` blocks to those of `depth`:
    the factor 1/sqrt(L) that Xiong et al. 2020 prove for pre-norm, and what was measured.
    """

    least: int
    depth: int
    theory: float
    pre: float
    post: float


def last_block(weights: Means, depth: int) -> LastBlock | None:
    """From `averaged(..., "weights")`. None where only one depth was measured, or what was is not finite."""
    least = min((d for _, d in weights), default=0)
    pairs = [[weights.get((w, d)) for d in (least, depth)] for w in ("pre", "post")]
    last = [[math.nan if v is None else float(v[-1]) for v in pair] for pair in pairs]
    if depth <= least or not all(math.isfinite(v) and v > 0 for pair in last for v in pair):
        return None
    pre, post = (there / here for here, there in last)
    return LastBlock(least, depth, math.sqrt(least / depth), pre, post)
