"""What is read off the activations of neurons: the loudest, one along a text, what it raises and lowers, and
the places in a corpus where it answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.measure.feedforward.neurons import Scan

Side = Literal["strongest", "highest", "lowest"]  # strongest: whichever of the other two is larger
SIDES: tuple[Side, ...] = ("strongest", "highest", "lowest")


def loudest(values: np.ndarray) -> tuple[int, ...]:
    """Where the largest activation by size is: an index for each axis of values; the first of several."""
    return tuple(int(i) for i in np.unravel_index(np.abs(values).argmax(), values.shape))


def by_size(values: np.ndarray, count: int | None = None) -> np.ndarray:
    """The neurons of values (d_ff,), largest by size first: at most `count` of them; all, in their own order,
    where that is None.
    """
    return np.arange(len(values)) if count is None else np.argsort(-np.abs(values), kind="stable")[:count]


MASSIVE = 10.0


def first_is_massive(post: np.ndarray) -> bool:
    """Whether the first token excites some neuron more than MASSIVE times as much as any other token does
    any: of post (layer, query, d_ff). Large models do that (Sun et al. 2024, "Massive activations in large
    language models").
    """
    if post.shape[1] < 2:
        return False
    size = np.abs(post).max(axis=(0, 2))  # (query,)
    return bool(size[0] > MASSIVE * size[1:].max())


def scale_end(values: np.ndarray) -> tuple[float, bool]:
    """(where a colour scale for activations ends, whether some lie beyond it): at the largest by size, or,
    where that is far out, at the size that one in a thousand exceeds.
    """
    size = np.abs(values)
    top = float(size.max(initial=0.0))
    usual = float(np.quantile(size, 0.999)) if size.size else top
    return (usual, True) if 0 < 3 * usual < top else (top, False)


@dataclass(frozen=True, eq=False)
class Along:
    """One neuron along a text: `at` and `peak`, where its activation is largest by size and what it is there;
    its ends; and every size as a share of the largest, (query,) in [0, 1].
    """

    at: int
    peak: float
    low: float
    high: float
    sizes: np.ndarray


def along(values: np.ndarray) -> Along:
    """From activations (query,)."""
    size = np.abs(values)
    at = int(size.argmax())
    top = max(float(size[at]), 1e-9)
    return Along(at, float(values[at]), float(values.min()), float(values.max()), size / top)


@dataclass(frozen=True, eq=False)
class Promoted:
    """Tokens by how much a write raises their logits. `order` (vocab,): most raised first, most lowered last;
    `raised` and `lowered`, the ends of it, each with its most affected token first.
    """

    order: np.ndarray
    raised: np.ndarray
    lowered: np.ndarray

    def ends(self, count: int) -> np.ndarray:
        """`order`, of more than 2 `count` tokens only the first and the last `count`."""
        if len(self.order) <= 2 * count:
            return self.order
        return np.concatenate((self.order[:count], self.order[-count:]))


def promoted(scores: np.ndarray, count: int = 8) -> Promoted:
    """From `token_scores` (vocab,). No token is on both ends."""
    order = np.argsort(-scores, kind="stable")
    count = min(count, len(order) // 2)
    return Promoted(order, order[:count], order[::-1][:count])


# In a corpus ------------------------------------------------------------------------------------


def shows_lowest(found: Scan, neuron: int, side: Side) -> bool:
    """Whether the places to show are those where the neuron is lowest."""
    if side == "strongest":
        return bool(-found.lowest[neuron, 0] > found.highest[neuron, 0])
    return side == "lowest"


def places(found: Scan, neuron: int, lowest: bool) -> tuple[np.ndarray, np.ndarray]:
    """(positions, activations) of a neuron's strongest answers, strongest first: both (place,)."""
    at = (found.lowest_at if lowest else found.highest_at)[neuron]
    at = at[at >= 0]
    return at, (found.lowest if lowest else found.highest)[neuron, : len(at)]


def windows(at: np.ndarray, window: int) -> list[int]:
    """Where the windows begin in which those positions were read."""
    return [int(p) // window * window for p in at]


@dataclass(frozen=True)
class Liked:
    """The token at which a neuron's strongest places are, `count` of its `places`. `value` is its strongest
    activation anywhere.
    """

    token: int
    count: int
    places: int
    value: float


def liked(at: np.ndarray, values: np.ndarray, ids: np.ndarray) -> Liked:
    """The commonest token among `places`; of several, the one with the strongest: `ids` (position,)."""
    tokens = np.asarray(ids)[at]
    often = (tokens[:, None] == tokens).sum(1)
    token = int(tokens[int(often.argmax())])
    return Liked(token, int(often.max()), len(tokens), float(values[0]))


@dataclass(frozen=True, eq=False)
class Excerpt:
    """A place in a corpus: the neuron's `value` at position `at`, and the tokens from `first` on around it
    with their activations as shares of the strongest of all excerpts, (token,) in about [-1, 1]. `missing`
    tokens that would be in front of it were not read with it.
    """

    at: int
    value: float
    first: int
    strengths: np.ndarray
    missing: int


def excerpts(
    at: np.ndarray, values: np.ndarray, near: np.ndarray, window: int, before: int, after: int
) -> list[Excerpt]:
    """`at`, `values` (place,) from `places`, `near` (place, window) the activations along their windows; up
    to `before` tokens in front and `after` behind, all of the same window.
    """
    scale = max(float(np.abs(values).max(initial=0.0)), 1e-9)
    found = []
    for position, value, row, start in zip(at.tolist(), values, near, windows(at, window), strict=True):
        first, last = max(start, position - before), min(start + window, position + after + 1)
        strengths = row[first - start : last - start] / scale
        found.append(Excerpt(position, float(value), first, strengths, before - (position - first)))
    return found
