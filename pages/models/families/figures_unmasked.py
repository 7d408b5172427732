"""Arrays -> the square of one model on one text, and below it how probable it finds each letter. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import SEQUENTIAL, colour

STRIP, BETWEEN = 0.09, 0.04  # of the height: the letters' chances, and the room above them
MASKED = colour("quiet", 25)


def square_figure(weights: np.ndarray, chances: np.ndarray, title: str, labels: Sequence[str]) -> go.Figure:
    """Draws weights (query, key) in [0, 1]; chances (query,) in [0, 1], NaN where nothing is said. Where no
    later letter has any weight, they are masked, and grey.
    """
    later = np.triu(np.ones_like(weights, dtype=bool), 1)
    shown = weights if weights[later].any() else np.where(later, np.nan, weights)
    letters = [f"{plain(label)} at {i}" for i, label in enumerate(labels)]
    square = {"x": letters, "y": letters, "hovertemplate": "%{y} attends to %{x}<br>weight %{z:.4f}"}
    strip = {"x": letters, "y": [""], "hovertemplate": "probability of %{x}: %{z:.4f}", "yaxis": "y2"}
    return go.figure(
        [_heat(shown, square), _heat(chances[None], strip)],
        margin={"l": 22, "r": 2, "t": 42, "b": 4},
        showlegend=False,
        plot_bgcolor=MASKED,
        xaxis=_axis(labels) | {"side": "top", "tickangle": 0, "anchor": "y"},
        yaxis=_axis(labels) | {"autorange": "reversed", "domain": [STRIP + BETWEEN, 1]},
        yaxis2=_axis(()) | {"domain": [0, STRIP]},
        annotations=[go.heading(f"<b>{title}</b>", yshift=18)],
    )


def _heat(values: np.ndarray, rest: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "z": values.astype(np.float32),
        "zmin": 0,
        "zmax": 1,
        "colorscale": SEQUENTIAL,
        "showscale": False,
        "hoverongaps": False,
        **rest,
        "hovertemplate": rest["hovertemplate"] + "<extra></extra>",
    }


def _axis(labels: Sequence[str]) -> dict[str, Any]:
    """With what its cells are called, or without."""
    return go.ticks(
        list(range(len(labels))),
        [plain(label) for label in labels],
        tickfont={"size": 9, "family": "monospace"},
        ticklabeloverflow="allow",
        ticks="",
        fixedrange=True,
    )
