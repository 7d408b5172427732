"""Arrays -> figures of positions: outputs by word, what order changes, the sinusoidal table, its wavelengths,
similarities and rotation. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, symmetric, token_axis
from ui.figures.labels import plain
from ui.figures.theme import DIVERGING, base_layout, colour

FLOOR = 1e-8  # where a difference of exactly 0 is drawn on a logarithmic axis
_SCALE = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 1.0,
    "yanchor": "bottom",
    "len": 0.5,
    "thickness": 10,
    "nticks": 4,
    "ticklabelposition": "outside top",
    "tickfont": {"size": 12},
}


def _counted(title: str, count: int, labels: int = 8, **rest: Any) -> dict[str, Any]:
    """An axis of numbers from 0 to count - 1 with about `labels` round ones. Plotly puts the title below
    ticks that it knows beforehand.
    """
    step = next(s for s in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128) if s * labels >= count)
    return {
        "title": {"text": title},
        "tickvals": np.arange(0, count, step),
        "showgrid": False,
        "zeroline": False,
        "tickangle": 0,
    } | rest


def word_rows(
    values: np.ndarray, words: Sequence[str], top: float, name: str, *, scale: bool = True
) -> go.Figure:
    """values (word, dimension), the first word on top; blue below zero, orange above, the scale ending at
    `top`.
    """
    at = -np.arange(len(words))
    heat = go.Heatmap(
        z=values.astype(np.float32),
        y=at,
        zmin=-top,
        zmax=top,
        colorscale=DIVERGING,
        xgap=1,
        ygap=2,
        showscale=scale,
        colorbar=_SCALE,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in words])[:, None], values.shape).tolist(),
        hovertemplate=f"{name}, “%{{customdata}}”, dimension %{{x}}: %{{z:.7g}}<extra></extra>",
    )
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 40},
        showlegend=False,
        xaxis=_counted("dimension", values.shape[1], 4),
        yaxis={
            "tickvals": at,
            "ticktext": [plain(w) for w in words],
            "tickfont": MONO,
            "showgrid": False,
            "zeroline": False,
        },
    )
    return go.Figure({"data": [heat], "layout": layout})


def scheme_dots(largest: Mapping[str, Mapping[str, float]], chosen: tuple[str, str]) -> go.Figure:
    """mask words -> scheme -> largest difference, on a logarithmic axis; `chosen` (mask words, scheme) is
    ringed. 0 is drawn at FLOOR.
    """
    looks = {0: ("circle", "position", -0.09), 1: ("diamond", "attention", 0.09)}
    traces = []
    for row, (name, by_scheme) in enumerate(largest.items()):
        symbol, part, aside = looks[row % 2]
        values = np.array(list(by_scheme.values()))
        ring = [3 if (name, scheme) == chosen else 0 for scheme in by_scheme]
        traces.append(
            go.Scatter(
                x=np.arange(len(by_scheme)) + aside,
                y=np.maximum(values, FLOOR),
                mode="markers",
                name=name,
                text=list(by_scheme),
                customdata=values,
                marker={
                    "symbol": symbol,
                    "size": 15,
                    "color": colour(part),
                    "line": {"width": ring, "color": colour("residual")},
                },
                hovertemplate="%{text}: largest difference %{customdata:.3g}",
            )
        )
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 30, "b": 30},
        xaxis=rows_axis(list(next(iter(largest.values()))), tickfont=MONO, range=[-0.5, 5.5]),
        yaxis={
            "type": "log",
            "title": {"text": "largest difference"},
            "exponentformat": "power",
            "dtick": 2,
            "range": [-8.4, 1.0],
        },
    )
    return go.Figure({"data": traces, "layout": layout})


def moved_bars(values: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """How far each token's final vector moved (position,), in units of the usual length of such a vector."""
    bars = go.Bar(
        x=np.arange(len(labels)),
        y=values.astype(np.float32),
        marker={"color": colour("position")},
        customdata=[plain(label) for label in labels],
        hovertemplate="token %{x} “%{customdata}”: moved by %{y:.3g}<extra></extra>",
    )
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        bargap=0.15,
        xaxis=token_axis(labels, "token of the text, as written"),
        yaxis={"title": {"text": "moved by"}, "rangemode": "tozero", "exponentformat": "power"},
    )
    return go.Figure({"data": [bars], "layout": layout})


# Sinusoids --------------------------------------------------------------------------------------


def table_map(values: np.ndarray) -> go.Figure:
    """PE (position, d_model): a row for each position, 0 on top; blue is -1, orange +1."""
    heat = go.Heatmap(
        z=values.astype(np.float32),
        zmin=-1,
        zmax=1,
        colorscale=DIVERGING,
        colorbar=_SCALE,
        hovertemplate="PE(position %{y}, dimension %{x}) = %{z:+.4f}<extra></extra>",
    )
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis=_counted("dimension (even: sine, odd: cosine)", values.shape[1]),
        yaxis=_counted("position", len(values), autorange="reversed"),
    )
    return go.Figure({"data": [heat], "layout": layout})


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
    layout = base_layout(
        margin={"l": 8, "r": 12, "t": 30, "b": 44},
        xaxis={"title": {"text": "pair i"}, "zeroline": False},
        yaxis={
            "title": {"text": "wavelength, positions"},
            "type": "log",
            "exponentformat": "power",
            "dtick": 1,
        },
    )
    return go.Figure({"data": [line, text], "layout": layout})


def likeness_map(values: np.ndarray, step: int) -> go.Figure:
    """Cosines (position, position), every `step`-th position."""
    at = np.arange(len(values)) * step
    heat = go.Heatmap(
        z=values.astype(np.float32),
        x=at,
        y=at,
        zmin=-1,
        zmax=1,
        colorscale=DIVERGING,
        colorbar=_SCALE,
        hovertemplate="positions %{y} and %{x}: cosine %{z:+.4f}<extra></extra>",
    )
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis=_counted("position", len(at) * step),
        yaxis=_counted("position", len(at) * step, autorange="reversed"),
    )
    return go.Figure({"data": [heat], "layout": layout})


def likeness_curve(cosines: np.ndarray) -> go.Figure:
    """Cosine by distance (distance,)."""
    line = go.Scatter(
        x=np.arange(len(cosines)),
        y=cosines.astype(np.float32),
        mode="lines",
        line={"color": colour("position"), "width": 2.5},
        hovertemplate="distance %{x}: cosine %{y:+.4f}<extra></extra>",
    )
    layout = base_layout(
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": "distance, positions"}, "zeroline": False},
        yaxis={
            "title": {"text": "cosine"},
            "range": [min(-0.3, float(cosines.min()) - 0.05), 1.06],
            "zeroline": True,
            "zerolinecolor": colour("quiet"),
        },
    )
    return go.Figure({"data": [line], "layout": layout})


def turned_pair(start: tuple[float, float], end: tuple[float, float], p: int, k: int) -> go.Figure:
    """The pair (sin, cos) of position p and of p + k as hands of a clock: right is the sine, up the
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
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 30, "b": 40},
        xaxis={"title": {"text": "sine"}, "range": [-1.15, 1.15], "nticks": 5, "zeroline": True},
        yaxis={
            "title": {"text": "cosine"},
            "range": [-1.15, 1.15],
            "nticks": 5,
            "scaleanchor": "x",
            "zeroline": True,
        },
    )
    return go.Figure({"data": [circle, *hands], "layout": layout})


def block_map(matrix: np.ndarray, k: int, pair: int | None) -> go.Figure:
    """R(k) (dimension, dimension), the first row on top; a frame around the block of `pair` where that is
    drawn.
    """
    top = symmetric(matrix)
    heat = go.Heatmap(
        z=matrix.astype(np.float32),
        zmin=-top,
        zmax=top,
        colorscale=DIVERGING,
        colorbar=_SCALE,
        hovertemplate=f"R({k}), row %{{y}}, column %{{x}}: %{{z:+.4f}}<extra></extra>",
    )
    frame = {"type": "rect", "line": {"color": colour("attention"), "width": 3}}
    corners = (
        []
        if pair is None
        else [
            frame | {"x0": 2 * pair - 0.5, "x1": 2 * pair + 1.5, "y0": 2 * pair - 0.5, "y1": 2 * pair + 1.5}
        ]
    )
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        shapes=corners,
        xaxis=_counted("dimension of PE(p)", len(matrix)),
        yaxis=_counted("dimension of PE(p + k)", len(matrix), autorange="reversed"),
    )
    return go.Figure({"data": [heat], "layout": layout})
