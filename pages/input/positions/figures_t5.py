"""Arrays -> figures of T5's bias: its buckets, and what each head has learned. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pages.input.positions.bias_map import head_line
from ui.figures import specs as go
from ui.figures.theme import colour


def bucket_steps(offsets: np.ndarray, buckets: np.ndarray, exact: int, open_from: int) -> go.Figure:
    """Draws bucket against offset (offset,): one colour where each distance has its own, another where
    several share one, grey for the last, which has no end.
    """
    distance = np.abs(offsets)
    traces = []
    for name, mask, shade in (
        ("own bucket each", distance < exact, "position"),
        ("logarithmic", (distance >= exact) & (distance < open_from), "attention"),
        (f"from {open_from}: one for all", distance >= open_from, "quiet"),
    ):
        traces.append(
            go.Scatter(
                mode="lines+markers",
                name=name,
                x=offsets.astype(np.float32),
                y=np.where(mask, buckets, np.nan).astype(np.float32),
                line={"color": colour(shade), "width": 2, "shape": "hvh"},
                marker={"size": 4, "color": colour(shade)},
                connectgaps=False,
                hovertemplate="key − query = %{x}<br>bucket %{y}<extra></extra>",
            )
        )
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        xaxis=go.axis("offset: key − query", zeroline=True),
        yaxis={"title": {"text": "bucket"}, "rangemode": "tozero"},
    )


def _context_mark(context: int, low: float, high: float) -> dict[str, Any]:
    """Dotted lines where the training's context ends, if that is inside the picture; offsets reach to both
    sides.
    """
    line = {"color": colour("output"), "dash": "dot", "width": 1.5}
    ends = [x for x in (-context + 0.5, context - 0.5) if low <= x <= high]
    return dict(shapes=[go.rule(x=x, line=line) for x in ends])


def bias_lines(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """Draws what each head adds at each offset: bias (head, offset). The dotted line is the end of the
    training context.
    """
    traces = [
        go.Scatter(
            mode="lines",
            name=f"head {head}",
            x=offsets.astype(np.float32),
            y=row.astype(np.float32),
            line=head_line(head) | {"shape": "hvh"},
            hovertemplate="key − query = %{x}<br>bias %{y:.4f}<extra>" + f"head {head}" + "</extra>",
        )
        for head, row in enumerate(bias)
    ]
    return go.figure(
        traces,
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        showlegend=len(bias) <= 8,
        xaxis=go.axis("offset: key − query"),
        yaxis={"title": {"text": "bias on the score"}, "zeroline": True},
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )


def bias_by_head(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """Draws the same as a picture: bias (head, offset), a row for each head."""
    heat = go.signed(
        bias,
        x=offsets,
        y=np.arange(len(bias)),
        hovertemplate="head %{y}, key − query = %{x}<br>bias %{z:.4f}<extra></extra>",
        colorbar=go.scale("bias"),
    )
    return go.figure(
        [heat],
        margin={"l": 52, "r": 8, "t": 12, "b": 44},
        showlegend=False,
        xaxis=go.axis("offset: key − query", zeroline=False),
        yaxis=go.axis("head", dtick=1 if len(bias) <= 16 else 4, autorange="reversed", zeroline=False),
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )
