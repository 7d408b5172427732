"""Arrays -> figures of byte-pair encoding: how a text shrinks with every merge. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour

SHADES = ("embedding", "run1", "run0", "run3")
DASHES = ("solid", "dot")


def compression(curves: Mapping[str, np.ndarray], unit: str) -> go.Figure:
    """Draws `curves`: name -> value after 0, 1, 2 ... merges."""
    traces = [
        go.Scatter(
            mode="lines",
            x=np.arange(len(values), dtype=np.float32),
            y=values.astype(np.float32),
            name=plain(name),
            line={"color": colour(SHADES[i % len(SHADES)]), "width": 3, "dash": DASHES[min(i, 1)]},
            hovertemplate=f"after %{{x}} merges: %{{y:.4~g}} {unit}<extra>{plain(name)}</extra>",
        )
        for i, (name, values) in enumerate(curves.items())
    ]
    top = max(float(values.max()) for values in curves.values())
    return go.figure(
        traces,
        xaxis={"title": {"text": "merges made"}, "rangemode": "tozero"},
        yaxis={"title": {"text": unit}, "range": [0, top * 1.05]},
        uirevision=f"bpe-{unit}",
        showlegend=len(curves) > 1,
        margin={"l": 64, "r": 16, "t": 28, "b": 44},
    )


def four_ways(names: Sequence[str], start: Sequence[int], left: Sequence[int]) -> go.Figure:
    """Draws tokens of the same text before and after the same number of merges, a pair of bars for each way,
    first on top.
    """
    at = -np.arange(len(names))
    bars = [
        go.Bar(
            orientation="h",
            y=at,
            x=np.asarray(values),
            name=name,
            marker={"color": colour("residual", 45) if light else colour("embedding")},
            text=[f"{v:,}" for v in values],
            textposition="auto",
            hovertemplate=f"%{{x:,}} {name}<extra></extra>",
        )
        for name, values, light in (("tokens at the start", start, True), ("tokens left", left, False))
    ]
    return go.figure(
        bars,
        barmode="group",
        bargap=0.25,
        margin={"l": 8, "r": 16, "t": 28, "b": 40},
        xaxis={"title": {"text": "tokens of the text"}, "rangemode": "tozero"},
        yaxis=go.ticks(at, [plain(n) for n in names], automargin=True),
        uirevision="bpe-ways",
    )
