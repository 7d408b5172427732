"""Arrays -> figures of the view "Why": outputs by word, what order changes, scheme by scheme and token by
token. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pages.input.positions.shared_figures import SCALE, counted
from ui.figures import specs as go
from ui.figures.axes import MONO, rows_axis, token_axis
from ui.figures.labels import plain
from ui.figures.theme import DIVERGING, base_layout, colour

FLOOR = 1e-8  # where a difference of exactly 0 is drawn on a logarithmic axis


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
        colorbar=SCALE,
        customdata=np.broadcast_to(np.asarray([plain(w) for w in words])[:, None], values.shape).tolist(),
        hovertemplate=f"{name}, “%{{customdata}}”, dimension %{{x}}: %{{z:.7g}}<extra></extra>",
    )
    layout = base_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 40},
        showlegend=False,
        xaxis=counted("dimension", values.shape[1], 4),
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
