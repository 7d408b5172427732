"""Losses over the steps of a training, as lines, with the line of a baseline. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import colour


def line(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray, name: str, of: str) -> go.Trace:
    return go.Scatter(
        x=np.asarray(x),
        y=np.asarray(y),
        mode="lines",
        name=name,
        line={"color": colour(of), "width": 2.5},
        hovertemplate=f"{name}, step %{{x}}: %{{y:.2f}}<extra></extra>",
    )


def losses(traces: Sequence[go.Trace], baseline: float, text: str) -> go.Figure:
    """Draws lines of losses, and a line at a baseline."""
    return go.figure(
        traces,
        xaxis={"title": {"text": "step"}, "rangemode": "tozero"},
        yaxis={"title": {"text": "loss, nats"}, "rangemode": "tozero"},
        **go.level(text, baseline, font={"size": 12}),
    )
