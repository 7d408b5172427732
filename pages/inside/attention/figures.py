"""Arrays -> figures of attention. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.patterns import (
    matrix_heatmap,
    named_cells,
    placed,
    token_axis,
)
from ui.figures.theme import colour


def two_bars(table: pd.DataFrame) -> go.Figure:
    """Draws probabilities before and after, side by side: columns token, before, after."""
    rows = np.arange(len(table))
    traces = [
        go.Bar(
            orientation="h",
            name=name,
            x=table[name].to_numpy(np.float32),
            y=rows,
            marker={"color": shade},
            hovertext=[plain(token) for token in table["token"]],  # in full
            hovertemplate="%{hovertext} %{x:.4f}<extra>" + name + "</extra>",
        )
        for name, shade in (("before", colour("quiet")), ("after", colour("output")))
    ]
    return go.figure(
        traces,
        margin={"l": 30, "r": 12, "t": 28, "b": 44},
        barmode="group",
        bargap=0.25,
        xaxis={"title": {"text": "probability"}, "rangemode": "tozero"},
        yaxis=token_axis(list(table["token"]), "", size=14, range=[len(table) - 0.5, -0.5]),
    )


def kl_bars(kl: np.ndarray, labels: Sequence[str], chosen: int) -> go.Figure:
    """Draws one bar for each position: kl (query,), nats; the chosen one stands out."""
    shades = [colour("output") if i == chosen else colour("quiet") for i in range(len(kl))]
    bars = go.Bar(
        x=np.arange(len(kl)),
        y=kl.astype(np.float32),
        marker={"color": shades},
        customdata=[plain(label) for label in labels],
        hovertemplate="after %{customdata}, position %{x}<br>%{y:.4f} nats<extra></extra>",
    )
    top = float(np.nanmax(kl)) if np.isfinite(kl).any() else 0.0
    return go.figure(
        [bars],
        margin={"l": 56, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.1,
        xaxis=go.axis("position"),
        yaxis={"title": {"text": "KL (nats)"}, "range": [0, max(top, 1e-3) * 1.05]},
    )


def parts_heatmap(parts: Mapping[str, np.ndarray], labels: Sequence[str]) -> go.Figure:
    """Draws matrices (position, width) side by side, signed, on one scale; each named above its columns."""
    values = np.concatenate(list(parts.values()), axis=1)
    figure = matrix_heatmap(
        values,
        labels,
        "value",
        signed=True,
        columns=[str(i) for i in range(values.shape[1])],
        across="dimension",
    )
    edges = np.cumsum([0, *(p.shape[1] for p in parts.values())])
    line = {"color": colour("quiet"), "width": 1}
    layout = {
        "xaxis": {
            "tickmode": "array",
            "tickvals": (edges[:-1] + edges[1:] - 1) / 2,
            "ticktext": list(parts),
            "tickfont": {"size": 14},
        },
        "yaxis": {"title": {"text": "token"}},
        "shapes": [go.rule(x=x - 0.5, line=line) for x in edges[1:-1]],
    }
    names = [f"{part} {i}" for part, matrix in parts.items() for i in range(matrix.shape[1])]
    cells = named_cells([f"token {name}" for name in placed(labels)], names, ", ")
    return figure.changed(layout, hovertemplate="%{hovertext}<br>%{z:.4f}<extra></extra>", **cells)
