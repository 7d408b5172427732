"""Arrays -> figures of the sinusoidal positions: wavelengths, likeness and rotation. Pure
functions.
"""

from __future__ import annotations

import numpy as np

from pages.input.positions.maps import signed_map
from ui.figures import specs as go
from ui.figures.theme import colour


def wavelength_curve(values: np.ndarray, length: int) -> go.Figure:
    """Wavelengths (pair,) in positions on a logarithmic axis, and a line at the length of the text."""
    at = np.arange(len(values))
    line = go.Scatter(
        x=at,
        y=values,
        mode="lines+markers" if len(values) <= 64 else "lines",
        line={"color": colour("position"), "width": 2.5},
        showlegend=False,
        hovertemplate="pair %{x}: once around in %{y:.4g} positions<extra></extra>",
    )
    text = go.Scatter(
        x=at[[0, -1]] if len(at) > 1 else np.array([-0.5, 0.5]),
        y=[length, length],
        mode="lines",
        name=f"{length} positions, the table’s length",
        hoverinfo="skip",
        line={"color": colour("quiet"), "width": 1.5, "dash": "dot"},
        showlegend=True,
    )
    return go.figure(
        [line, text],
        margin={"l": 8, "r": 12, "t": 30, "b": 44},
        xaxis={"title": {"text": "pair i"}, "zeroline": False},
        yaxis=go.axis("wavelength, positions", showgrid=True, type="log", exponentformat="power", dtick=1),
    )


def likeness_curve(cosines: np.ndarray) -> go.Figure:
    """Draws cosine by distance (distance,)."""
    line = go.Scatter(
        x=np.arange(len(cosines)),
        y=cosines.astype(np.float32),
        mode="lines",
        line={"color": colour("position"), "width": 2.5},
        hovertemplate="distance %{x}: cosine %{y:+.4f}<extra></extra>",
    )
    return go.figure(
        [line],
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "distance, positions"}, "zeroline": False},
        yaxis=go.axis(
            "cosine",
            showgrid=True,
            range=[min(-0.3, float(cosines.min()) - 0.05), 1.06],
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
    )


def turned_pair(start: np.ndarray, end: np.ndarray, p: int, k: int) -> go.Figure:
    """Draws the pair (sin, cos) of position p and of p + k as hands of a clock: right is the sine, up the
    cosine.
    """
    round_ = np.linspace(0, 2 * np.pi, 121)
    circle = go.Scatter(
        x=np.sin(round_),
        y=np.cos(round_),
        mode="lines",
        line={"color": colour("quiet", 45), "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )
    hands = [
        go.Scatter(
            x=[0, tip[0]],
            y=[0, tip[1]],
            mode="lines+markers",
            name=name,
            line={"color": colour(part), "width": 4, "dash": dash},
            marker={"size": [0, 12], "color": colour(part), "opacity": 1},
            hovertemplate=f"{name}: (%{{x:.3f}}, %{{y:.3f}})<extra></extra>",
        )
        for tip, name, part, dash in (
            (start, f"position {p}", "residual", "dot"),
            (end, f"position {p + k}", "position", "solid"),
        )
    ]
    return go.figure(
        [circle, *hands],
        margin={"l": 8, "r": 8, "t": 30, "b": 40},
        xaxis={"title": {"text": "sine"}, "range": [-1.15, 1.15], "nticks": 5, "zeroline": True},
        yaxis=go.axis("cosine", showgrid=True, range=[-1.15, 1.15], nticks=5, scaleanchor="x", zeroline=True),
    )


def block_map(matrix: np.ndarray, k: int, pair: int | None) -> go.Figure:
    """Draws R(k) (dimension, dimension), the first row on top; a frame around the block of `pair` where that
    is drawn.
    """
    frame = {"type": "rect", "line": {"color": colour("attention"), "width": 3}}
    corners = (
        []
        if pair is None
        else [
            frame | {"x0": 2 * pair - 0.5, "x1": 2 * pair + 1.5, "y0": 2 * pair - 0.5, "y1": 2 * pair + 1.5}
        ]
    )
    hover = f"R({k}), row %{{y}}, column %{{x}}: %{{z:+.4f}}"
    return signed_map(matrix, "dimension of PE(p)", "dimension of PE(p + k)", hover, shapes=corners)
