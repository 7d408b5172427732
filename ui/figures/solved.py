"""Arrays -> the share of a task's problems that are solved, by step. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import colour


@dataclass(frozen=True, eq=False)
class Solved:
    """A curve: `shares` (look,), 0 to 1, after `steps` (look,). `shade` is a colour's name."""

    name: str
    steps: np.ndarray
    shares: np.ndarray
    shade: str
    dash: str = "solid"


def solved_curves(curves: Sequence[Solved], end: float, *, what: str = "problems solved") -> go.Figure:
    """Draws share solved against step, each curve with its newest value. `what` the share is of."""
    traces: list[dict[str, Any]] = []
    for curve in curves:
        share = f" {curve.shares[-1]:.0%}" if len(curve.shares) else ""
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": curve.steps,
                "y": curve.shares,
                "name": f"{curve.name}{share}",
                "line": {"color": colour(curve.shade), "width": 3, "dash": curve.dash},
                "marker": {"size": 6},
                "cliponaxis": False,
                "hovertemplate": "%{y:.0%} after step %{x:,}<extra></extra>",
            }
        )
    return go.figure(
        traces,
        uirevision="solved",
        margin={"l": 52, "r": 14, "t": 8, "b": 40},
        legend={"font": {"size": 13}},
        xaxis={"title": {"text": "step"}, "showgrid": False, "range": [0, end]},
        yaxis={"title": {"text": what}, "range": [-0.02, 1.03], "tickformat": ".0%"},
    )
