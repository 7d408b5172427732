"""Counts -> figures of where a block's parameters are. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.ledger.block import BlockParameters, Shares
from ui.figures import specs as go
from ui.figures.theme import colour

PARTS = {"attention": "attention", "feedforward": "feed-forward", "norm": "norms"}


def block_bars(rows: Sequence[tuple[str, BlockParameters]]) -> go.Figure:
    """Draws parameters of one block, part by part, one bar a row: rows of (name, counts)."""
    names = [name for name, _ in rows]
    bars = []
    for part, label in PARTS.items():
        counts = [getattr(block, part) for _, block in rows]
        shares = [block.share_of(part) for _, block in rows]
        bars.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": np.array(counts, dtype=np.float64),
                "name": label,
                "marker": {"color": colour(part)},
                "text": [f"{share:.1%}" if share > 0.06 else "" for share in shares],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "customdata": shares,
                "hovertemplate": f"{label}: %{{x:,.0f}} (%{{customdata:.2%}})<extra></extra>",
            }
        )
    return go.figure(
        bars,
        barmode="stack",
        margin={"l": 130, "r": 16, "t": 34, "b": 44},
        bargap=0.3,
        uniformtext={"minsize": 12, "mode": "hide"},
        xaxis={"title": {"text": "parameters in one block"}, "tickformat": "~s"},
        yaxis={"autorange": "reversed", "showgrid": False},
    )


def share_line(shares: Shares) -> go.Figure:
    """Draws the feed-forward share of a block over d_ff / d_model, and the two points of the same height."""
    marks = ((4, shares.four, "4·d", "bottom right"), (8 / 3, shares.eight_thirds, "8/3·d", "top left"))
    hover = "%{fullData.name}, d_ff = %{x:.2f} d: %{y:.1%}<extra></extra>"
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": shares.ratios,
            "y": y,
            "name": name,
            "hovertemplate": hover,
            "line": {"color": colour("feedforward"), "width": 2, "dash": dash},
        }
        for y, name, dash in (
            (shares.plain, "two matrices", "solid"),
            (shares.gated, "three matrices (gated)", "dash"),
        )
    ]
    dots = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [m[0] for m in marks],
        "y": [m[1] for m in marks],
        "text": [m[2] for m in marks],
        "textposition": [m[3] for m in marks],
        "marker": {"size": 10, "color": colour("output")},
        "showlegend": False,
        "cliponaxis": False,
        "hovertemplate": "%{text}: %{y:.2%}<extra></extra>",
    }
    return go.figure(
        [*lines, dots],
        margin={"l": 56, "r": 16, "t": 34, "b": 44},
        xaxis={"title": {"text": "d_ff / d_model"}},
        yaxis={"title": {"text": "share of a block"}, "range": [0, 1], "tickformat": ".0%"},
    )
