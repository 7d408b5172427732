"""Arrays -> figures that several views draw: a bias, a pattern in half the width; and how a head is told from
others. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.patterns import pattern_heatmap
from ui.figures.theme import DIVERGING, colour

HEAD_COLOURS = ("position", "attention", "validation", "run0", "output", "run2", "run3", "residual")
DASHES = ("solid", "dash", "dot", "dashdot")
SCALE = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 1.0,
    "yanchor": "bottom",
    "len": 0.5,
    "thickness": 10,
    "nticks": 4,
    "ticklabelposition": "outside top",
    "tickfont": {"size": 12},
}


def head_line(head: int) -> dict[str, Any]:
    """Returns eight colours, then again with other dashes."""
    return {"color": colour(HEAD_COLOURS[head % 8]), "width": 2.2, "dash": DASHES[head // 8 % 4]}


def counted(title: str, count: int, labels: int = 8, **rest: Any) -> dict[str, Any]:
    """Returns an axis of numbers from 0 to count - 1 with about `labels` round ones. Plotly puts the title
    below ticks that it knows beforehand.
    """
    step = next(s for s in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128) if s * labels >= count)
    return go.axis(title, tickvals=np.arange(0, count, step), zeroline=False, tickangle=0) | rest


def bias_heatmap(values: np.ndarray, name: str = "bias", reach: float | None = None) -> go.Figure:
    """Draws the bias added to the scores, (query, key); -inf is left blank. Signed, around zero; queries go
    down.
    """
    shown = np.where(np.isfinite(values), values, np.nan).astype(np.float32)
    most = reach or float(np.nanmax(np.abs(shown))) or 1.0
    heat = go.Heatmap(
        z=shown,
        hoverongaps=False,
        zmin=-most,
        zmax=most,
        zmid=0,
        colorscale=DIVERGING,
        hovertemplate="query %{y}, key %{x}<br>" + name + " %{z:.4f}<extra></extra>",
        colorbar=go.scale(name),
    )
    bare: dict[str, Any] = {"showgrid": False, "zeroline": False}
    return go.figure(
        [heat],
        margin={"l": 52, "r": 8, "t": 44, "b": 8},
        showlegend=False,
        xaxis={"title": {"text": "key position"}, "side": "top"} | bare,
        yaxis={"title": {"text": "query position"}, "autorange": "reversed"} | bare,
    )


def half_width_pattern(weights: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draws a pattern (query, key) in [0, 1] that stands beside another: fewer labels, so that they do not
    run into each other, and no scale.
    """
    figure = pattern_heatmap(weights, labels)
    step = -(-len(labels) // 24)
    ticks = {
        "tickvals": list(range(0, len(labels), step)),
        "ticktext": [plain(label) for label in labels[::step]],
    }
    shown = {
        "showscale": False,
        "hovertext": None,
        "customdata": _places(labels),
        "hovertemplate": "%{customdata}<br>weight %{z:.4f}<extra></extra>",
    }
    return figure.changed({"xaxis": ticks, "yaxis": ticks}, **shown)


def _places(labels: Sequence[str]) -> list[list[str]]:
    """Returns the hover text of each cell: its two tokens, which the thinned axes no longer name."""
    names = [f"“{plain(label)}” at {i}" for i, label in enumerate(labels)]
    return [[f"query {q}<br>key {k}" for k in names] for q in names]
