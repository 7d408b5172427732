"""Arrays -> figures of the causal mask. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.experiments.no_causal_mask import Both
from engine.measure.attention.ablation import UnmaskedReading
from pages.inside.attention import axes
from ui.figures import specs as go
from ui.figures.labels import crowded
from ui.figures.patterns import named_cells, placed, token_axis
from ui.figures.theme import SEQUENTIAL, colour

SMALLEST, BELOW = 205, 42  # pixels of a pattern, and below it
SCALE = {  # the colours of weights, below a pattern
    "orientation": "h",
    "x": 0.5,
    "xanchor": "center",
    "y": -0.03,
    "yanchor": "top",
    "len": 0.7,
    "thickness": 8,
    "tickvals": [0, 0.5, 1],
    "ticktext": ["0", "weight 0.5", "1"],
}
SHADES = (("with the mask", "attention"), ("without it", "output"))


def single_pattern(weights: np.ndarray, labels: Sequence[str], masked: bool) -> go.Figure:
    """Draws weights (query, key) of a head, with the mask (what it hides is grey) or without, in [0, 1]."""
    name, _ = SHADES[0 if masked else 1]
    cells = named_cells([f"query {n}" for n in placed(labels)], [f"key {n}" for n in placed(labels)], " → ")
    heat = go.Heatmap(
        z=axes.unmasked(weights, masked),
        zmin=0,
        zmax=1,
        colorscale=SEQUENTIAL,
        colorbar=SCALE,
        hoverongaps=False,
        hovertemplate="%{hovertext}<br>weight %{z:.4f}<extra></extra>",
        **cells,
    )
    margin = {"l": 26 + axes.room_for(labels, SMALLEST), "r": 6, "t": 50 + axes.room_for(labels, SMALLEST)}
    notes = [go.heading(f"<b>this head {name}</b>", yshift=margin["t"] - 24)]
    if masked and len(labels) > 2:
        corner = {"xanchor": "right", "yanchor": "top", "font": {"size": 13}}
        notes.append(go.heading("masked:<br>future tokens", 0.97, 0.93, **corner))
    return go.figure(
        [heat],
        margin=margin | {"b": BELOW},
        showlegend=False,
        annotations=notes,
        plot_bgcolor=axes.MASKED,
        xaxis=axes.across(labels, SMALLEST, size=11),
        yaxis=axes.down(labels, SMALLEST, size=11),
    )


def learning_curves(both: Both, at: int) -> go.Figure:
    """Loss on held-out text over the steps, with the mask and without; the step `at` is marked, with its
    numbers.
    """
    traces: list[dict[str, Any]] = []
    for (name, shade), run in zip(SHADES, (both.masked, both.unmasked), strict=True):
        hover = "step %{x}<br>%{y:.3f} nats"
        traces.append(go.line(run.steps, run.losses, shade, f"trained {name}", hover, width=3))
        traces.append(
            go.Scatter(
                mode="markers+text",
                x=[run.steps[at]],
                y=[run.losses[at]],
                text=[f"{run.losses[at]:.2f}"],
                textposition="top left" if at else "middle right",
                textfont={"size": 14},
                marker={"size": 11, "color": colour(shade)},
                showlegend=False,
                hoverinfo="skip",
                cliponaxis=False,
            )
        )
    return go.figure(
        traces,
        margin={"l": 50, "r": 20, "t": 30, "b": 44},
        xaxis=go.axis("training step"),
        yaxis={"title": {"text": "loss (nats)"}, "rangemode": "tozero"},
    )


def losses_by_position(unmasked: UnmaskedReading, labels: Sequence[str]) -> go.Figure:
    """Draws the loss of each token after the first, both ways."""
    positions = np.arange(1, len(labels))
    traces = [
        go.line(
            positions,
            values.astype(np.float32),
            shade,
            name,
            "%{customdata}<br>%{y:.3f} nats",
            points=6,
            customdata=placed(labels)[1:],
        )
        for (name, shade), values in zip(SHADES, (unmasked.loss_with, unmasked.loss_without), strict=True)
    ]
    axis = token_axis(labels, "predicted token", 12, tickangle=-90 if crowded(labels, 900) else 0)
    return go.figure(
        traces,
        margin={"l": 56, "r": 8, "t": 28, "b": 90},
        xaxis=axis,
        yaxis={"title": {"text": "loss (nats)"}, "rangemode": "tozero"},
    )
