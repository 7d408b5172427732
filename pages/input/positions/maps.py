"""Maps that several views of Positions draw: signed values, cosines, tables of vectors, patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui import content
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.patterns import pattern_heatmap, pattern_table
from ui.players.plot import plot

TEXT = content.beside(__file__)
SCALE = go.scale_above("", 0.5, nticks=4)


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
    return signed_map(cosines, TEXT["position"], TEXT["position"], TEXT["hover cosine"], 1, step=step)


def table_map(table: np.ndarray, dimension: str) -> go.Figure:
    """Draws a table (position, d_model), position 0 on top; `dimension` is the title below."""
    top = float(np.quantile(np.abs(table), 0.995)) or 1.0
    return signed_map(table, dimension, TEXT["position"], TEXT["hover table"], top)


def draw_pattern(pattern: np.ndarray, labels: list[str], key: str, name: str, alt: str) -> None:
    """Draws a pattern (query, key) in [0, 1] that stands beside another: fewer labels, so that they do not
    run into each other, and no scale.
    """
    step = -(-len(labels) // 24)
    ticks = {
        "tickvals": list(range(0, len(labels), step)),
        "ticktext": [plain(label) for label in labels[::step]],
    }
    figure = pattern_heatmap(pattern, labels).changed({"xaxis": ticks, "yaxis": ticks}, showscale=False)
    plot(figure, key=key, height=440, name=name, data=pattern_table(pattern, labels), alt=alt)
