"""Arrays -> figures of T5's bias: its buckets, and what each head has learned. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pages.input.positions.figures_shared import head_line
from ui.figures import specs as go
from ui.figures.theme import DIVERGING, base_layout, colour


def bucket_steps(offsets: np.ndarray, buckets: np.ndarray, exact: int, open_from: int) -> go.Figure:
    """Draws bucket against offset (offset,): one colour where each distance has its own, another where
    several share one, grey for the last, which has no end.
    """
    distance = np.abs(offsets)
    traces = []
    for name, mask, shade in (
        ("own bucket each", distance < exact, "position"),
        ("logarithmic", (distance >= exact) & (distance < open_from), "attention"),
        (f"from {open_from} on: all in one", distance >= open_from, "quiet"),
    ):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": offsets.astype(np.float32),
                "y": np.where(mask, buckets, np.nan).astype(np.float32),
                "line": {"color": colour(shade), "width": 2, "shape": "hvh"},
                "marker": {"size": 4, "color": colour(shade)},
                "connectgaps": False,
                "hovertemplate": "key − query = %{x}<br>bucket %{y}<extra></extra>",
            }
        )
    layout = base_layout(
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        xaxis={"title": {"text": "offset: key − query"}, "showgrid": False, "zeroline": True},
        yaxis={"title": {"text": "bucket"}, "rangemode": "tozero"},
    )
    return go.Figure({"data": traces, "layout": layout})


def _context_mark(context: int, low: float, high: float) -> dict[str, Any]:
    """Dotted lines where the training's context ends, if that is inside the picture; offsets reach to both
    sides.
    """
    line = {"color": colour("output"), "dash": "dot", "width": 1.5}
    ends = [x for x in (-context + 0.5, context - 0.5) if low <= x <= high]
    return {
        "shapes": [
            {"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line} for x in ends
        ]
    }


def bias_lines(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """Draws what each head adds at each offset: bias (head, offset). The dotted line is the end of the
    training context.
    """
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"head {head}",
            "x": offsets.astype(np.float32),
            "y": row.astype(np.float32),
            "line": head_line(head) | {"shape": "hvh"},
            "hovertemplate": "key − query = %{x}<br>bias %{y:.4f}<extra>" + f"head {head}" + "</extra>",
        }
        for head, row in enumerate(bias)
    ]
    layout = base_layout(
        margin={"l": 56, "r": 12, "t": 34, "b": 44},
        showlegend=len(bias) <= 8,
        xaxis={"title": {"text": "offset: key − query"}, "showgrid": False},
        yaxis={"title": {"text": "bias on the score"}, "zeroline": True},
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )
    return go.Figure({"data": traces, "layout": layout})


def bias_by_head(bias: np.ndarray, offsets: np.ndarray, context: int) -> go.Figure:
    """Draws the same as a picture: bias (head, offset), a row for each head."""
    most = float(np.abs(bias).max()) or 1.0
    heat = {
        "type": "heatmap",
        "x": offsets,
        "y": np.arange(len(bias)),
        "z": bias.astype(np.float32),
        "zmin": -most,
        "zmax": most,
        "zmid": 0,
        "colorscale": DIVERGING,
        "hovertemplate": "head %{y}, key − query = %{x}<br>bias %{z:.4f}<extra></extra>",
        "colorbar": {"title": {"text": "bias", "side": "right"}},
    }
    layout = base_layout(
        margin={"l": 52, "r": 8, "t": 12, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "offset: key − query"}, "showgrid": False, "zeroline": False},
        yaxis={
            "title": {"text": "head"},
            "dtick": 1 if len(bias) <= 16 else 4,
            "autorange": "reversed",
            "showgrid": False,
            "zeroline": False,
        },
        **_context_mark(context, float(offsets.min()), float(offsets.max())),
    )
    return go.Figure({"data": [heat], "layout": layout})
