"""How tokens are drawn on this page: the look of a class, and an axis of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ui.figures.labels import plain
from ui.figures.patterns import token_axis

MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
# A class has a colour *and* a shape, so that it can be told without the colour.
CLASS_COLOURS = ("run4", "validation", "training", "run3", "run0", "run1", "run2", "quiet")
CLASS_SYMBOLS = ("circle", "square", "diamond", "star", "triangle-up", "hexagon", "cross", "x")
# By name: a class that two kinds of vocabulary share looks alike in both.
_ORDER = {
    "vowels": 0,
    "consonants": 1,
    "capitals": 2,
    "digits": 3,
    "punctuation": 4,
    "whitespace": 5,
    "other": 7,
    "begins a word": 1,
    "inside a word": 0,
    "capitalised": 2,
    "part of a character": 6,
}


def class_look(name: str) -> tuple[str, str]:
    """(name of its colour, symbol) of a class of tokens."""
    index = _ORDER.get(name, 7)
    return CLASS_COLOURS[index], CLASS_SYMBOLS[index]


def token_rows(labels: Sequence[str], **rest: Any) -> dict[str, Any]:
    """A y axis of tokens, the first on top; with very many, every second, third ... is named."""
    step = -(-len(labels) // 72)
    ticks = {
        "tickvals": list(range(0, len(labels), step)),
        "ticktext": [plain(label) for label in labels[::step]],
    }
    return token_axis(labels, "", 10) | ticks | {"range": [len(labels) - 0.5, -0.5]} | rest
