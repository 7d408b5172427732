"""Arrays -> figures of attention. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from pages.inside.attention import axes
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.patterns import (
    heatmap_height,
    matrix_heatmap,
    named_cells,
    pattern_heatmap,
    placed,
    token_axis,
)
from ui.figures.theme import SEQUENTIAL, colour

HEAD_COLOURS = ("attention", "run0", "validation", "run1", "run2", "run4", "run3", "run5")
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


def read_pattern(weights: np.ndarray, labels: Sequence[str], causal: bool) -> go.Figure:
    """Draws weights (query, key) in [0, 1], queries down; what the mask hides is grey."""
    wide, tall = 230, heatmap_height(len(weights)) - 100  # pixels of the cells, where they have least
    margin = {"l": 34 + axes.room_for(labels, tall), "t": 30 + axes.room_for(labels, wide), "r": 8, "b": 8}
    layout = {"margin": margin, "xaxis": axes.across(labels, wide), "yaxis": axes.down(labels, tall)}
    masked = {"plot_bgcolor": axes.MASKED} if causal else {}
    return pattern_heatmap(axes.unmasked(weights, causal), labels).changed(layout | masked)


def _across(values: np.ndarray) -> bool:
    return len(values) > MOST_WITH_TEXT and len(values) > values.shape[1]


def head_table(columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Returns one row for each head, from arrays (layer, head). Layers and heads count from 0."""
    layers, heads = next(iter(columns.values())).shape
    index = {"layer": np.repeat(np.arange(layers), heads), "head": np.tile(np.arange(heads), layers)}
    return pd.DataFrame(index | {name: values.reshape(-1) for name, values in columns.items()})


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
