"""The figure of the lookup: E, the input, and which row goes where. A pure function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pages.input.embeddings.looks import token_rows
from ui.figures import specs as go
from ui.figures.theme import colour

NAMED = 22  # rows that carry their token


def lookup_figure(
    table: np.ndarray,
    table_labels: Sequence[str],
    rows: np.ndarray,
    labels: Sequence[str],
    picked: np.ndarray,
    chosen: int,
    reach: float,
) -> go.Figure:
    """Draws e (row, d_model) on the left, the text's rows of it (query, d_model) on the right; a line from
    each row to the places it is copied to.

    `picked` (query,) is the row of `table` that each position takes; `chosen` is the position that stands
    out; `reach` the end of the colour scale.
    """
    height, length, width = len(table), len(rows), table.shape[1]
    bar = {
        "orientation": "h",
        "x": 0.49,
        "xanchor": "center",
        "y": 0,
        "yanchor": "top",
        "len": 0.11,
        "thickness": 10,
        "ypad": 8,
    }
    bar |= dict(tickvals=[-reach, 0, reach], ticktext=["−", "0", "+"], tickangle=0, tickfont={"size": 11})
    traces: list[dict[str, Any]] = [
        go.signed(
            table,
            reach,
            showscale=False,
            hovertemplate="E, row of “%{y}”, dimension %{x}: %{z:.4f}<extra></extra>",
        ),
        go.signed(
            rows,
            reach,
            xaxis="x3",
            yaxis="y3",
            hovertemplate="token “%{y}”, dimension %{x}: %{z:.4f}<extra></extra>",
            colorbar=bar,
        ),
    ]
    left, right = (picked + 0.5) / height, (np.arange(length) + 0.5) / length
    others = np.arange(length) != chosen
    for some, shade, thick in ((others, colour("embedding", 40), 1.0), (~others, colour("attention"), 3.0)):
        x = np.tile([0.0, 1.0, np.nan], np.count_nonzero(some))
        y = np.stack([left[some], right[some], np.full(np.count_nonzero(some), np.nan)], axis=1).ravel()
        traces.append(
            go.Scatter(
                mode="lines",
                x=x,
                y=y,
                xaxis="x2",
                yaxis="y2",
                hoverinfo="skip",
                showlegend=False,
                line={"color": shade, "width": thick},
            )
        )
    box = dict(type="rect", line={"color": colour("attention"), "width": 2.5}, x0=-0.5, x1=width - 0.5)
    shapes = [
        box | {"xref": "x", "yref": "y", "y0": picked[chosen] - 0.5, "y1": picked[chosen] + 0.5},
        box | {"xref": "x3", "yref": "y3", "y0": chosen - 0.5, "y1": chosen + 0.5},
    ]
    title = {"xref": "paper", "yref": "paper", "y": 1.0, "yanchor": "bottom", "showarrow": False, "yshift": 4}
    dimension = go.axis("dimension", zeroline=False)
    hidden = {"visible": False, "fixedrange": True}
    return go.figure(
        traces,
        margin={"l": 8, "r": 8, "t": 30, "b": 40},
        showlegend=False,
        shapes=shapes,
        uirevision=f"lookup-{height}-{length}",
        annotations=[
            title | {"text": f"E: {height} rows", "x": 0.0, "xanchor": "left"},
            title | {"text": f"input: {length} rows", "x": 0.56, "xanchor": "left"},
        ],
        xaxis=dimension | {"domain": [0, 0.42], "anchor": "y"},
        yaxis=token_rows(table_labels, NAMED, int(picked[chosen])),
        xaxis2=hidden | {"domain": [0.425, 0.555], "range": [0, 1], "anchor": "y2"},
        yaxis2=hidden | {"range": [1, 0], "anchor": "x2"},
        xaxis3=dimension | {"domain": [0.56, 1], "anchor": "y3"},
        yaxis3=token_rows(labels, NAMED, chosen, side="right", anchor="x3"),
    )
