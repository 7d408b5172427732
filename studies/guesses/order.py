"""A guess about the order of words."""

from __future__ import annotations

from engine.config import Position
from studies.guesses import Truth
from studies.positions.permutation import SAME, OrderEffect


def next_setting(scheme: Position, causal: bool) -> tuple[Position, bool]:
    """Returns the setting to guess: without positions the other mask, with positions none.

    >>> next_setting("none", False), next_setting("rope", True)
    (('none', True), ('none', True))
    """
    return "none", causal if scheme != "none" else not causal


def reordered(effect: OrderEffect, scheme: Position, causal: bool) -> Truth | None:
    """Returns whether the rows of "all" words, of "some" or of "none" change with their order in
    `next_setting`. None where the sentence reads the same in both orders.
    """
    if effect.unchanged:
        return None
    rows = effect.comparisons[next_setting(scheme, causal)].by_word
    changed = int((rows > SAME).sum())
    right = "none" if not changed else "all" if changed == len(rows) else "some"
    numbers = {"changed": changed, "words": len(rows), "largest": float(rows.max())}
    return Truth(right, ("none", "some", "all"), numbers)
