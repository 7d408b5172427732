"""What a map of patching says in a few words: on what the answer hangs, when it moves, what counts most."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from engine.measure.circuits.patching import Patching
from engine.measure.circuits.prompt_pairs import Contrast

HALF = 0.5  # of the answer: what holds more of it than all others together
SMALL = 1.0  # nats: prompts whose answers differ by less hardly tell them apart


Verdict = Literal["tells", "hardly", "swapped", "always first", "always second"]


def verdict(contrast: Contrast) -> Verdict:
    """Whether the two prompts bring out the two answers at all: what a map of shares is worth."""
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


def stations(found: Patching) -> tuple[Station, ...]:
    """Bottom up: of the stream (layer, query), the token whose patch restores most in each block, equal
    neighbours taken together.
    """
    shares = found.restored
    best = shares.argmax(1)
    top = shares[np.arange(len(best)), best]
    holders = [int(p) if share >= HALF else None for p, share in zip(best, top, strict=True)]
    edges = [0, *(i for i in range(1, len(holders)) if holders[i] != holders[i - 1]), len(holders)]
    return tuple(
        Station(holders[a], a, b - 1, float(top[a:b].min()), float(top[a:b].max()))
        for a, b in pairwise(edges)
    )


@dataclass(frozen=True)
class Cell:
    """One patch: its block, its place (a position or a head), and the share that it restores."""

    layer: int
    place: int
    share: float


def strongest(found: Patching, count: int = 3) -> tuple[Cell, ...]:
    """The patches that restore most, best first; of equal ones the lowest block."""
    order = np.argsort(-found.restored, axis=None, kind="stable")[:count]
    return tuple(
        Cell(int(layer), int(place), float(found.restored[layer, place]))
        for layer, place in zip(*np.unravel_index(order, found.restored.shape), strict=True)
    )
