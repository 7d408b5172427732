"""How tokens are drawn on this page: the look of a class, an axis of tokens, bars of cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.axes import MONO, token_axis
from ui.figures.labels import plain
from ui.figures.theme import colour

ROOMY = 30  # names on an axis that can be written larger
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
    """Returns (name of its colour, symbol) of a class of tokens."""
    index = _ORDER.get(name, 7)
    return CLASS_COLOURS[index], CLASS_SYMBOLS[index]


def token_rows(
    labels: Sequence[str], most: int = 72, always: int | None = None, **rest: Any
) -> dict[str, Any]:
    """Returns a y axis of tokens, the first on top; with more than `most`, every second, third ... is named,
    and the one that is `always` named in the place of those beside it.
    """
    step = -(-len(labels) // most)
    named = list(range(0, len(labels), step))
    if always is not None:
        named = sorted([*(i for i in named if abs(i - always) >= step), always])
    ticks = {"tickvals": named, "ticktext": [plain(labels[i]) for i in named]}
    size = 10 if most > ROOMY else 14
    return token_axis(labels, "", size) | ticks | {"range": [len(labels) - 0.5, -0.5]} | rest


def cosine_bars(
    words: Sequence[str],
    cosines: np.ndarray,
    shades: Sequence[str],
    axis: dict[str, Any],
    hover: str,
    bargap: float,
    **properties: Any,
) -> go.Figure:
    """Draws the cosines of tokens, the first on top, on an `axis` up to 1; `properties` are the bars'."""
    at, names = -np.arange(len(words)), [plain(word) for word in words]
    bars = go.Bar(
        orientation="h",
        x=cosines.astype(np.float32),
        y=at,
        marker={"color": [colour(shade) for shade in shades]},
        **properties,
        hovertext=names,
        hovertemplate=hover,
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 12, "t": 8, "b": 40},
        showlegend=False,
        bargap=bargap,
        xaxis=axis | {"range": [min(0.0, float(cosines.min(initial=0))) * 1.05, 1]},
        yaxis=go.ticks(at, names, tickfont=MONO | {"size": 14}),
    )
