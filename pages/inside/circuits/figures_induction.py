"""Arrays -> figures of induction: both readings, heads switched off, the score of every head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, token_axis
from ui.figures.labels import crowded, plain
from ui.figures.theme import SEQUENTIAL, colour


def readings(first: np.ndarray, second: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Loss of each token at its first and at its second reading, (place,) both."""
    at = np.arange(len(labels))
    words = [plain(label) for label in labels]
    hover = "“%{customdata}”: %{y:.2f} nats"
    traces = [
        go.line(at, first, "quiet", "first reading", hover, points=5, dash="dot", customdata=words),
        go.line(at, second, "validation", "second reading", hover, points=5, customdata=words),
    ]
    tall = crowded(labels, 480)
    return go.figure(
        traces,
        margin={"l": 44, "r": 8, "t": 26, "b": 30 + (7 * tall or 14)},
        xaxis=token_axis(labels, "random tokens", upright=tall > 0)
        | {"tickfont": MONO | {"size": 11 if tall else 13}},
        yaxis={"title": {"text": "loss (nats)"}, "rangemode": "tozero", "zeroline": False},
    )


def knocked_out(
    without: np.ndarray, others: np.ndarray, mean: np.ndarray, heads: Sequence[str], first: float
) -> go.Figure:
    """Loss of the second reading by the number of heads that are off: the best (1 + heads,), as many others
    (draw, 1 + heads) with their mean; `first` is the loss of the first reading, a line.
    """
    at = np.arange(len(without))
    off = ["all heads", *(f"without {head}" for head in heads)]
    traces = [
        go.line(at, draw, "quiet", width=1, opacity=0.5, hoverinfo="skip", showlegend=False)
        for draw in others
    ]
    traces += [
        go.line(at, mean, "quiet", "random heads, mean", "%{x} random heads off: %{y:.2f} nats", points=5),
        go.line(
            at, without, "attention", "best heads", "%{customdata}: %{y:.2f} nats", points=5, customdata=off
        ),
    ]
    rule = go.rule(y=first, line={"color": colour("quiet"), "dash": "dot", "width": 1.2})
    label = go.note("first reading", 1, first, xref="paper", xanchor="right", yanchor="bottom")
    return go.figure(
        traces,
        margin={"l": 44, "r": 8, "t": 26, "b": 60},
        shapes=[rule],
        annotations=[label],
        xaxis=go.ticks(
            at,
            ["none", *heads],
            title="heads ablated (cumulative)",
            tickangle=0 if len(heads) <= 8 else -90,
        ),
        yaxis={"title": {"text": "second reading (nats)"}, "rangemode": "tozero", "zeroline": False},
    )


def scores_map(scores: np.ndarray) -> go.Figure:
    """Draws a weight in [0, 1] of every head, (layer, head); layer 0 at the bottom."""
    heat = go.Heatmap(
        z=scores.astype(np.float32),
        zmin=0,
        zmax=1,
        colorscale=SEQUENTIAL,
        xgap=1,
        ygap=1,
        hovertemplate="block %{y}, head %{x}: %{z:.3f}<extra></extra>",
        colorbar={"title": {"text": "weight", "side": "top"}, "thickness": 10},
    )
    layers, heads = ([str(i) for i in range(n)] for n in scores.shape)
    return go.figure(
        [heat],
        margin={"l": 44, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis=rows_axis(heads, title={"text": "head"}, tickangle=0),
        yaxis=rows_axis(layers, title={"text": "block"}),
    )
