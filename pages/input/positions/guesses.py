"""Guesses before the views of Positions."""

from __future__ import annotations

from engine.config import Position
from engine.lab.guesses import order
from engine.measure.positions.permutation import OrderEffect
from ui.guess import Choice, Guess, offered
from ui.text.numbers import number

CHANGED = {
    "none": Choice(
        "No word's row changes",
        "Attention ignores positions, but the mask decides which words are visible.",
    ),
    "some": Choice(
        "Only some words' rows change",
        "Moving a word changes other rows only if something encodes positions.",
    ),
    "all": Choice(
        "Every word's row changes",
        "The words have moved, but attention still sums the same words with the same weights.",
    ),
}
HOLDS = {
    "none": "Each word is compared with the same words as before, and a sum has no order.",
    "some": "Only the mask encodes order: a word with the same predecessors as before keeps its row.",
    "all": "Only the mask encodes order: each word now follows different words.",
}


def order_guess(effect: OrderEffect, scheme: Position, causal: bool) -> Guess | None:
    """Makes a guess about the same words without positions, in the view Why."""
    truth = order.reordered(effect, scheme, causal)
    if truth is None:
        return None
    bare, mask = order.next_setting(scheme, causal)
    how = "with the causal mask" if mask else "without a mask"
    choices, right = offered(truth, CHANGED, HOLDS[truth.right])
    n = truth.numbers
    return Guess(
        f"No positions at all, {how}: what does the new order do?",
        choices,
        right,
        f"{n['changed']} of {n['words']} rows change, by at most {number(n['largest'])}. The switches are set"
        " to this now.",
        {"why_scheme": bare, "why_causal": mask},
    )
