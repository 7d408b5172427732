"""Arrays -> figures that several views draw: signed values, a pattern in half the width, the line of a head.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.patterns import pattern_heatmap
from ui.figures.theme import colour

HEAD_COLOURS = ("position", "attention", "validation", "run0", "output", "run2", "run3", "residual")
DASHES = ("solid", "dash", "dot", "dashdot")
SCALE = go.scale_above("", 0.5, nticks=4)


def head_line(head: int) -> dict[str, Any]:
    """Returns eight colours, then again with other dashes."""
    return {"color": colour(HEAD_COLOURS[head % 8]), "width": 2.2, "dash": DASHES[head // 8 % 4]}


def counted(title: str, count: int, labels: int = 8, **rest: Any) -> dict[str, Any]:
    """Returns an axis of numbers from 0 to count - 1 with about `labels` round ones. Plotly puts the title
    below ticks that it knows beforehand.
    """
    step = next(s for s in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128) if s * labels >= count)
    return go.axis(title, tickvals=np.arange(0, count, step), zeroline=False, tickangle=0) | rest


def signed_map(
    values: np.ndarray,
    x: str,
    y: str,
    hover: str,
    top: float | None = None,
    *,
    step: int = 1,
    shapes: Sequence[dict[str, Any]] = (),
) -> go.Figure:
    """Draws values (row, column) around zero, row 0 on top; colours end at `top`, else at the largest. The
    values are those of every `step`-th row and column. `x` and `y` are titles, `hover` is a cell's text.
    """
    rows, columns = (np.arange(count) * step for count in values.shape)
    heat = go.signed(values, top, x=columns, y=rows, colorbar=SCALE, hovertemplate=f"{hover}<extra></extra>")
    return go.figure(
        [heat],
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        shapes=list(shapes),
        xaxis=counted(x, len(columns) * step),
        yaxis=counted(y, len(rows) * step, autorange="reversed"),
    )


def cosine_map(cosines: np.ndarray, step: int = 1) -> go.Figure:
    """Draws the cosine of every two positions (position, position), or of every `step`-th."""
    hover = "positions %{y} and %{x}: cosine %{z:+.4f}"
    return signed_map(cosines, "position", "position", hover, 1, step=step)


def bias_heatmap(values: np.ndarray, top: float | None = None) -> go.Figure:
    """Draws the bias added to the scores, (query, key); -inf is left blank."""
    hover = "query %{y}, key %{x}<br>bias %{z:.4f}"
    return signed_map(values, "key position", "query position", hover, top)


def half_width_pattern(weights: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Draws a pattern (query, key) in [0, 1] that stands beside another: fewer labels, so that they do not
    run into each other, and no scale.
    """
    step = -(-len(labels) // 24)
    ticks = {
        "tickvals": list(range(0, len(labels), step)),
        "ticktext": [plain(label) for label in labels[::step]],
    }
    return pattern_heatmap(weights, labels).changed({"xaxis": ticks, "yaxis": ticks}, showscale=False)
