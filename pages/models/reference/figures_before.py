"""Influence over distance. A pure function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.measure.families.influence_by_distance import LayerInfluence
from pages.models.reference.words_before import NAMES
from ui.figures import specs as go
from ui.figures.theme import colour

LOWEST = -12  # decades: what is below leaves the picture, and the answer says it
COLOURS = {"rnn": "run4", "lstm": "run1", "attention": "run0"}


def influence_lines(layers: Sequence[LayerInfluence]) -> go.Figure:
    """Draws a line for each kind of layer: (distance,) influence, on a logarithmic axis down to 10^-12."""
    traces = [
        go.Scatter(
            x=np.arange(1, layer.length),
            y=layer.influence,
            mode="lines",
            name=NAMES[layer.layer],
            line={"color": colour(COLOURS[layer.layer]), "width": 3},
            hovertemplate=f"{NAMES[layer.layer]}, %{{x}} back: %{{y:.3~g}}<extra></extra>",
        )
        for layer in layers
    ]
    return go.figure(
        traces,
        margin={"l": 70, "r": 24, "t": 30, "b": 44},
        xaxis={"title": {"text": "tokens back"}, "zeroline": False, "rangemode": "tozero"},
        yaxis={
            "title": {"text": "influence on the last output"},
            "type": "log",
            "range": [LOWEST, 0.7],
            "exponentformat": "power",
            "dtick": 2,
        },
    )
