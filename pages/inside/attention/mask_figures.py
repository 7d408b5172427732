"""Arrays -> figures of the causal mask. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.measure.masking import Unmasked
from engine.training.unmasked import Both
from ui.figures import specs as go
from ui.figures.labels import crowded
from ui.figures.patterns import named_cells, placed, token_axis
from ui.figures.theme import SEQUENTIAL, base_layout, colour

MOST = 16  # tokens at an edge
SHADES = (("with the mask", "attention"), ("without it", "output"))


def both_patterns(masked: np.ndarray, unmasked: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """Weights (query, key) side by side, on one scale."""
    cells = named_cells([f"query {n}" for n in placed(labels)], [f"key {n}" for n in placed(labels)], " → ")
    tall = bool(crowded(labels, 300))
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for axis, weights, domain in (("", masked, [0, 0.47]), ("2", unmasked, [0.53, 1])):
        traces.append(
            {
                "type": "heatmap",
                "z": weights.astype(np.float32),
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
                "zmin": 0,
                "zmax": 1,
                "colorscale": SEQUENTIAL,
                "showscale": False,
                **cells,
                "hovertemplate": "%{hovertext}<br>weight %{z:.4f}<extra></extra>",
            }
        )
        axes[f"xaxis{axis}"] = token_axis(
            labels, "", 11, MOST, domain=domain, anchor=f"y{axis}", tickangle=-90 if tall else 0
        )
        axes[f"yaxis{axis}"] = token_axis(
            labels, "", 11, MOST, anchor=f"x{axis}", autorange="reversed", showticklabels=not axis
        )
    notes = [_note(f"this head {name}", left) for (name, _), left in zip(SHADES, (0, 0.53), strict=True)]
    margin = {"l": 96 if tall else 30, "r": 6, "t": 28, "b": 90 if tall else 24}
    layout = base_layout(margin=margin, showlegend=False, annotations=notes)
    return go.Figure({"data": traces, "layout": layout | axes})


def _note(text: str, left: float) -> dict[str, Any]:
    place = {"xref": "paper", "yref": "paper", "x": left, "y": 1.01, "xanchor": "left", "yanchor": "bottom"}
    return place | {"text": f"<b>{text}</b>", "showarrow": False, "font": {"size": 14}}


def learning_curves(both: Both, at: int) -> go.Figure:
    """Loss on unseen text over the steps, with the mask and without; the step `at` is marked, with its
    numbers.
    """
    traces: list[dict[str, Any]] = []
    for (name, shade), one in zip(SHADES, (both.masked, both.unmasked), strict=True):
        line = {"color": colour(shade), "width": 3}
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"trained {name}",
                "x": one.steps,
                "y": one.losses,
                "line": line,
                "hovertemplate": "step %{x}<br>%{y:.3f} nats<extra>" + name + "</extra>",
            }
        )
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [one.steps[at]],
                "y": [one.losses[at]],
                "text": [f"{one.losses[at]:.2f}"],
                "textposition": "top left" if at else "middle right",
                "textfont": {"size": 14},
                "marker": {"size": 11, "color": colour(shade)},
                "showlegend": False,
                "hoverinfo": "skip",
                "cliponaxis": False,
            }
        )
    layout = base_layout(
        margin={"l": 50, "r": 20, "t": 30, "b": 44},
        xaxis={"title": {"text": "step of the training"}, "showgrid": False},
        yaxis={"title": {"text": "loss (nats)"}, "rangemode": "tozero"},
    )
    return go.Figure({"data": traces, "layout": layout})


def losses_by_place(found: Unmasked, labels: Sequence[str]) -> go.Figure:
    """The loss of each token after the first, both ways."""
    places = np.arange(1, len(labels))
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": places,
            "y": values.astype(np.float32),
            "line": {"color": colour(shade), "width": 2},
            "customdata": placed(labels)[1:],
            "hovertemplate": "%{customdata}<br>%{y:.3f} nats<extra>" + name + "</extra>",
        }
        for (name, shade), values in zip(SHADES, (found.loss_with, found.loss_without), strict=True)
    ]
    axis = token_axis(labels, "the token that is predicted", 12, tickangle=-90 if crowded(labels, 900) else 0)
    layout = base_layout(
        margin={"l": 56, "r": 8, "t": 28, "b": 90},
        xaxis=axis,
        yaxis={"title": {"text": "loss (nats)"}, "rangemode": "tozero"},
    )
    return go.Figure({"data": traces, "layout": layout})
