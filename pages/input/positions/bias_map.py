"""The parts of ALiBi and T5 alike: the choice of a mask, the bias as a map, the line of a head."""

from __future__ import annotations

from typing import Any

import numpy as np

from pages.input.positions.maps import signed_map
from ui import content, widgets
from ui.figures import specs as go
from ui.figures.theme import colour

TEXT = content.beside(__file__)
MASKS = ("causal", "both ways")
HEAD_COLOURS = ("position", "attention", "validation", "run0", "output", "run2", "run3", "residual")
DASHES = ("solid", "dash", "dot", "dashdot")


def choose_mask(key: str) -> bool:
    """True for a causal mask."""
    return widgets.select(TEXT["mask"], MASKS, key) == MASKS[0]


def bias_map(values: np.ndarray, top: float | None = None) -> go.Figure:
    """Draws the bias added to the scores, (query, key); -inf is left blank."""
    return signed_map(values, TEXT["key"], TEXT["query"], TEXT["hover"], top)


def head_line(head: int) -> dict[str, Any]:
    """Returns eight colours, then again with other dashes."""
    return {"color": colour(HEAD_COLOURS[head % 8]), "width": 2.2, "dash": DASHES[head // 8 % 4]}
