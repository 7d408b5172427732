"""What a new order of some words changes, scheme by scheme, with and without a causal mask, and what it says.

Only rounding is left where a scheme cannot tell the two orders apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.config import Position
from engine.measure.positions.permutation import (
    SCHEMES,
    Comparison,
    Plan,
    Setting,
    compare,
)

SAME = 1e-5  # differences below this are rounding in float32: the outputs here have sizes of 1 to 3
Verdict = Literal["reads the same", "one bag", "mask leaks", "distances kept", "order counts"]


@dataclass(frozen=True, eq=False)
class OrderEffect:
    """The same words in two orders through every scheme: `found` holds each comparison by (scheme, causal).

    `unchanged`: the sentence reads the same in the new order, so there is nothing to tell apart.
    """

    found: Mapping[tuple[Position, bool], Comparison] = field(repr=False)
    unchanged: bool

    def largest(self, scheme: Position, causal: bool) -> float:
        """The largest |matched - before| of that attention."""
        return self.found[scheme, causal].largest

    def verdict(self, scheme: Position, causal: bool) -> Verdict:
        """What the numbers say of that attention.

        `one bag`: nothing tells the order, and only rounding is left. `mask leaks`: no scheme, but the mask
        tells some. `distances kept`: ALiBi without a mask, in an order that keeps every distance.
        """
        if self.unchanged:
            return "reads the same"
        if scheme == "none":
            return "mask leaks" if causal else "one bag"
        if scheme == "alibi" and self.largest(scheme, causal) < SAME:
            return "distances kept"
        return "order counts"


def order_effect(ids: Sequence[int], order: np.ndarray) -> OrderEffect:
    """The words `ids` as they are and in `order`, through a fresh attention of each scheme. Raises
    ConfigError for an order that is none.
    """
    found = {(s, mask): compare(ids, order, Plan(s, mask)) for mask in (False, True) for s in SCHEMES}
    return OrderEffect(found, [ids[i] for i in order] == list(ids))


def moves_nothing(order: np.ndarray) -> bool:
    """Whether every item stays at its place.

    >>> moves_nothing(np.array([0, 1])), moves_nothing(np.array([1, 0]))
    (True, False)
    """
    return bool((order == np.arange(len(order))).all())


def setting_of(settings: Sequence[Setting], position: bool, mask: bool) -> Setting | None:
    """The one with these switches; None where the model has no such setting."""
    return next((s for s in settings if (s.position, s.mask) == (position, mask)), None)
