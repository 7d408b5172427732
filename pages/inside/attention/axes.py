"""Axes along a text that can be read: every token where there is room for it, else whole words, else nothing.

A text with every second letter left out is nonsense, so none is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures.labels import MOST_LETTERS, plain, short
from ui.figures.patterns import token_axis
from ui.figures.theme import colour

LINE = 9.0  # pixels that one label needs, one below the other
LOOKS, LOOKED = "this token attends …", "… to this one"  # who is down, who is across
BLANKS = "␣⏎⇥"
MASKED = colour("quiet", 25)  # behind cells that are no weights: later tokens, which the mask hides
LEFT_OUT = 0.25  # of the words, at most, for want of room


def words_of(labels: Sequence[str]) -> list[tuple[float, str]]:
    """Returns the words that tokens make, each with the middle of its place. A word ends at a blank.

    >>> words_of(list("a␣cat.")), words_of(["The", "␣lib", "rary"])
    ([(0.0, 'a'), (3.5, 'cat.')], [(0.0, 'The'), (1.5, 'library')])
    """
    words: list[tuple[int, int, str]] = []
    inside = False
    for at, label in enumerate(labels):
        letters = label.strip(BLANKS)
        if letters and inside and label[0] not in BLANKS:
            begin, _, text = words.pop()
            words.append((begin, at, text + letters))
        elif letters:
            words.append((at, at, letters))
        inside = bool(letters) and label[-1] not in BLANKS
    return [((begin + end) / 2, text) for begin, end, text in words]


def ticks(labels: Sequence[str], pixels: float) -> list[tuple[float, str]]:
    """Returns where a label stands, and which, on an axis of so many pixels."""
    cell = pixels / max(len(labels), 1)
    if cell >= LINE:
        return [(float(at), label) for at, label in enumerate(labels)]
    words = words_of(labels)
    spaced: list[tuple[float, str]] = []
    for at, word in words:
        if not spaced or (at - spaced[-1][0]) * cell >= LINE:
            spaced.append((at, word))
    return spaced if len(spaced) >= (1 - LEFT_OUT) * len(words) else []


def text_axis(
    labels: Sequence[str], title: str, pixels: float, size: int = 12, **rest: Any
) -> dict[str, Any]:
    """Returns an axis along a text, as wide or high as `pixels` where it is smallest."""
    marks = ticks(labels, pixels)
    texts = [plain(short(word, MOST_LETTERS)) for _, word in marks]
    named: dict[str, Any] = {"tickvals": [at for at, _ in marks], "ticktext": texts}
    return token_axis(labels, title, size) | named | {"range": [-0.5, len(labels) - 0.5]} | rest


def across(labels: Sequence[str], pixels: float, **rest: Any) -> dict[str, Any]:
    """Returns the axis of what is looked at, above; words stand upright."""
    upright = max((len(word) for _, word in ticks(labels, pixels)), default=0) > 1
    side = {"side": "top", "tickangle": -90 if upright else 0}
    return text_axis(labels, LOOKED, pixels, **(side | rest))


def down(labels: Sequence[str], pixels: float, **rest: Any) -> dict[str, Any]:
    """Returns the axis of who looks, from above to below."""
    backwards = {"range": [len(labels) - 0.5, -0.5]}
    return text_axis(labels, LOOKS, pixels, **(backwards | rest))


def room_for(labels: Sequence[str], pixels: float) -> int:
    """Pixels that the longest label needs."""
    longest = max((len(word) for _, word in ticks(labels, pixels)), default=0)
    return 6 + round(7 * min(longest, MOST_LETTERS))


def unmasked(weights: np.ndarray, causal: bool) -> np.ndarray:
    """Returns the weights (query, key) without those of later tokens, which are none: blank, so that zero and
    masked look different.
    """
    later = np.triu(np.ones(weights.shape, dtype=bool), 1)
    shown: np.ndarray = np.where(later & causal, np.nan, weights).astype(np.float32)
    return shown
