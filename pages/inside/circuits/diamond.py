"""The mark of a chosen point."""

from __future__ import annotations

from ui.figures import specs as go
from ui.figures.theme import colour


def diamond(x: float | str, y: float) -> go.Trace:
    """Draws a hollow diamond around a point."""
    return go.Scatter(
        x=[x],
        y=[y],
        mode="markers",
        name="chosen",
        showlegend=False,
        marker={"color": colour("output"), "symbol": "diamond-open", "size": 16, "line": {"width": 2.5}},
        hovertemplate="%{y:.4g}<extra></extra>",
    )
