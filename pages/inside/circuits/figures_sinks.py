"""Arrays -> figures of the sink: weight by layer and head, loss by how the text begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour

NAMED = 12  # layers that have room for the number of each of their heads


def sink_layers(share: np.ndarray, mean: np.ndarray, even: float, baseline: np.ndarray | None) -> go.Figure:
    """Draws weight on the earliest token in sight: every head (layer, head) a dot, the mean of a layer
    (layer,) a line; `baseline` is that of the text as it is, to compare.
    """
    layers, heads = share.shape
    layer, head = (grid.ravel() for grid in np.indices(share.shape))
    spread = 0.5 * (head + 0.5) / heads - 0.25  # heads of one layer side by side, so that none hides another
    dots = go.Scatter(
        x=layer + spread,
        y=share.ravel().astype(np.float32),
        mode="markers",
        name="one head",
        marker={"color": colour("attention", 50), "size": 5},
        customdata=[f"{a}.{b}" for a, b in zip(layer, head, strict=True)],
        hovertemplate="head %{customdata}: %{y:.1%}<extra></extra>",
    )
    at = np.arange(layers)
    traces, hover = [dots], "block %{x}: %{y:.1%}"
    if baseline is not None:
        before = "mean, text unchanged"
        traces.append(go.line(at, baseline, "quiet", before, hover, width=1.5, dash="dot", points=5))
    traces.append(go.line(at, mean, "attention", "mean", hover, points=5))
    ends, flat = np.array([-0.5, layers - 0.5]), np.array([even, even])
    uniform = go.line(ends, flat, "residual", "uniform attention", "%{y:.1%}", width=1.5, dash="dash")
    return go.figure(
        [*traces, uniform],
        margin={"l": 52, "r": 8, "t": 26, "b": 40},
        xaxis=go.axis("block", zeroline=False, dtick=1 if layers <= 12 else 5),
        yaxis={
            "title": {"text": "weight on the first token"},
            "range": [0, 1.03],
            "tickformat": ".0%",
            "zeroline": False,
        },
    )


def sink_losses(names: Sequence[str], losses: np.ndarray, chosen: int) -> go.Figure:
    """Draws a bar for each way to begin the text, the first on top: nats per token of the second half."""
    at = -np.arange(len(names))
    shades = [colour("attention") if i == chosen else colour("quiet", 60) for i in range(len(names))]
    bars = go.Bar(
        x=losses,
        y=at,
        orientation="h",
        marker={"color": shades},
        text=[f"{loss:.2f}" for loss in losses],
        textposition="outside",
        cliponaxis=False,
        customdata=[plain(name) for name in names],
        hovertemplate="%{customdata}: %{x:.3f} nats<extra></extra>",
    )
    return go.figure(
        [bars],
        margin={"l": 8, "r": 8, "t": 26, "b": 40},
        showlegend=False,
        bargap=0.25,
        xaxis={
            "title": {"text": "loss (nats)"},
            "range": [0, 1.4 * max(float(losses.max()), 1e-6)],  # room for the numbers
            "nticks": 4,
        },
        yaxis=go.ticks(at, [plain(name) for name in names], automargin=True),
    )


def value_bars(lengths: np.ndarray) -> go.Figure:
    """Draws lengths (2, layer, kv_head) of value vectors: at the earliest position in sight, and the mean of
    the others.
    """
    _, layers, kv = lengths.shape
    at = [(i, h) for i in range(layers) for h in range(kv)]
    axis: dict[str, Any] = go.axis("key-value head")
    groups: Any = [[f"block {i}" for i, _ in at], [f"{h}" for _, h in at]]
    if layers > NAMED:  # no room for a name below each: a layer's heads stand around its number
        groups = np.array([i + (h - (kv - 1) / 2) / (kv + 1) for i, h in at])
        axis |= {"title": {"text": "block, its key-value heads side by side"}, "dtick": 5}
    traces = [
        go.Bar(
            name=name,
            x=groups,
            y=values.reshape(-1).astype(np.float32),
            marker={"color": shade},
            hovertext=[f"block {i}, key-value head {h}" for i, h in at],
            hovertemplate="%{hovertext}<br>%{y:.3f}<extra>" + name + "</extra>",
        )
        for name, values, shade in (
            ("first position", lengths[0], colour("attention")),
            ("mean of the others", lengths[1], colour("quiet")),
        )
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 8, "t": 30, "b": 60},
        barmode="group",
        bargap=0.2,
        xaxis=axis,
        yaxis={"title": {"text": "norm of v"}, "rangemode": "tozero"},
    )
