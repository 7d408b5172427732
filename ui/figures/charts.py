"""Charts that several views draw, as a whole: the map of all heads, and the table of a chart of heads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import SEQUENTIAL

MOST_WITH_TEXT = 12  # cells beside each other that have room for a number


def head_heatmap(values: np.ndarray, name: str, *, top: float | None = None) -> go.Figure:
    """Draws one cell for each head: values (layer, head), from 0 up; layers go down, or across where they are
    many.
    """
    layers, heads = values.shape
    reach = top if top is not None else float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    across = _across(values)
    wide = layers if across else heads
    heat = go.Heatmap(
        z=(values.T if across else values).astype(np.float32),
        zmin=0,
        zmax=reach or 1.0,
        colorscale=SEQUENTIAL,
        xgap=2,
        ygap=2,
        x=np.arange(wide),
        y=np.arange(heads if across else layers),
        texttemplate=("%{z:.0%}" if top == 1 else "%{z:.2g}") if wide <= MOST_WITH_TEXT else "",
        textfont={"size": 13},
        hovertemplate=(
            f"block %{{{'x' if across else 'y'}}}, head %{{{'y' if across else 'x'}}}<br>{name}"
            " %{z:.4f}<extra></extra>"
        ),
        colorbar=go.scale(name),
    )
    down, right = ("head", "block") if across else ("block", "head")
    return go.figure(
        [heat],
        margin={"l": 52, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis=go.axis(right, dtick=1 if wide <= MOST_WITH_TEXT else 5),
        yaxis=go.axis(down, dtick=1, autorange="reversed"),
    )


def heads_height(values: np.ndarray) -> int:
    """Pixels of `head_heatmap`: values (layer, head)."""
    return 110 + 30 * values.shape[1] if _across(values) else 110 + 42 * values.shape[0]


def head_table(columns: Mapping[str, np.ndarray], head: str = "head") -> dict[str, np.ndarray]:
    """Returns one row for each head, from arrays (layer, head). Layers and heads count from 0.

    >>> head_table({"weight": np.array([[0.1, 0.2]])})
    {'layer': array([0, 0]), 'head': array([0, 1]), 'weight': array([0.1, 0.2])}
    """
    layers, heads = (grid.ravel() for grid in np.indices(next(iter(columns.values())).shape))
    return {"layer": layers, head: heads} | {name: values.ravel() for name, values in columns.items()}


def _across(values: np.ndarray) -> bool:
    return len(values) > MOST_WITH_TEXT and len(values) > values.shape[1]
