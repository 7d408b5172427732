"""A line with points, as several figures of circuits have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.theme import colour


def curve(x: np.ndarray, y: np.ndarray, name: str, shade: str, hover: str, **rest: Any) -> go.Trace:
    """Draws a line with points; `rest` goes to the trace, `dash` and `width` to its line."""
    line = {"color": colour(shade), "width": rest.pop("width", 2.5), "dash": rest.pop("dash", "solid")}
    trace = {"x": x, "y": y, "mode": "lines+markers", "name": name, "line": line, "marker": {"size": 5}}
    return go.Scatter(**(trace | {"hovertemplate": f"{hover}<extra>{name}</extra>"} | rest))
