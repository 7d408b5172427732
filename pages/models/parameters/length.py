"""The length of a text that FLOPs and memory grow with: its slider, and its axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ui import content, widgets
from ui.figures import specs as go
from ui.figures.theme import colour

TEXT = content.beside(__file__)
LENGTHS = tuple(2**k for k in range(4, 21))  # 16 to a million tokens


def length_slider(fallback: int) -> int:
    """Draws the slider for the length of the text, a power of two."""
    nearest = min(LENGTHS, key=lambda n: abs(np.log(n / max(fallback, 1))))
    # written without commas: the label is what a link holds
    return widgets.slide_over(TEXT["slider"], LENGTHS, nearest, "parameters_length")


def length_axis(lengths: np.ndarray) -> dict[str, Any]:
    """Returns a logarithmic axis: powers of 8 between its ends, written as people write them."""
    powers = [8**k * 2 for k in range(0, 12) if lengths[0] <= 8**k * 2 <= lengths[-1]]
    return {
        "type": "log",
        "title": {"text": TEXT["axis"]},
        "range": [float(np.log10(lengths[0])), float(np.log10(lengths[-1]))],
        "tickvals": powers,
        "ticktext": [f"{n // 1024}K" if n >= 1024 else str(n) for n in powers],
    }


def chosen_length(at: int) -> dict[str, Any]:
    """Returns a line at the chosen length."""
    return go.rule(x=at, line={"color": colour("quiet"), "width": 2})
