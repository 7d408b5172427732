"""How likely each answer is by step of a fine-tuning, and the singular values of a change. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import base_layout, colour

STYLES = {
    "new": ("output", "solid", 3.0),
    "reworded": ("output", "dot", 2.0),
    "known": ("validation", "solid", 2.0),
    "leak": ("run1", "dash", 2.0),
}


def answers_by_step(
    steps: Sequence[int], lines: np.ndarray, labels: Sequence[tuple[str, str]], end: int
) -> go.Figure:
    """Draws the probability of each answer (question, step) by step up to `end`; a label is its name and
    role.
    """
    traces = []
    for values, (name, role) in zip(lines, labels, strict=True):
        shade, dash, width = STYLES[role]
        traces.append(
            go.Scatter(
                x=list(steps),
                y=values,
                name=name,
                mode="lines+markers",
                line={"color": colour(shade), "dash": dash, "width": width},
                marker={"size": 5 if len(steps) > 1 else 9},
                hovertemplate="step %{x}: %{y:.1%}<extra>" + name + "</extra>",
            )
        )
    layout = base_layout(
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis=go.axis("step", dtick=max(1, end // 10), range=[-0.02 * end, 1.02 * end]),
        yaxis=go.axis("probability of the answer", range=[-0.02, 1.04], tickformat=".0%", showgrid=True),
    )
    return go.Figure({"data": traces, "layout": layout})


def singular_values(values: Sequence[float]) -> go.Figure:
    """Draws singular values, largest first."""
    bar = go.Bar(
        x=list(range(1, len(values) + 1)),
        y=list(values),
        marker={"color": colour("feedforward")},
        hovertemplate="%{x}: %{y:.3g}<extra></extra>",
    )
    layout = base_layout(
        margin={"l": 52, "r": 12, "t": 8, "b": 40},
        xaxis=go.axis("singular value of the change, by size", dtick=1),
        yaxis=go.axis("", showgrid=True),
    )
    return go.Figure({"data": [bar], "layout": layout})
