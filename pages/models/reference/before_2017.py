"""The view "Before 2017": how far a recurrent layer carries a token, and attention; what a layer costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from studies.families.influence_by_distance import LAYERS, LayerInfluence, layer_influence
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
LENGTHS = (8, 16, 32, 64, 128)
FIRST = 64
LOWEST = -12  # decades: what is below leaves the picture, and the answer says it
COLOURS = {"rnn": "run4", "lstm": "run1", "attention": "run0"}


def draw() -> None:
    """Draws a curve for each kind of layer, and a slider for the text's length."""
    length = widgets.slide_over(TEXT["length"], LENGTHS, FIRST, "reference_length", width=320)
    layers = _measured(length)
    kept = ", ".join(TEXT("kept", layer=_name(layer), left=layer.left) for layer in layers)
    plot(
        influence_lines(layers),
        key="reference_before",
        alt=TEXT("alt", distance=length - 1, kept=kept),
        height=380,
        data=pd.DataFrame(
            {"back": np.arange(1, length)} | {_name(layer): layer.influence for layer in layers}
        ),
        name="influence",
    )
    by_layer = {layer.layer: layer for layer in layers}
    attention, rnn = by_layer["attention"], by_layer["rnn"]
    explain.answer(
        TEXT(
            "carried far",
            path=attention.path,
            kept=attention.left,
            rnn_path=rnn.path,
            rnn_kept=rnn.left,
        )
    )
    explain.measure_it(_costs, layers)


@memo.measured(copied=True)
def _measured(length: int) -> tuple[LayerInfluence, ...]:
    return tuple(layer_influence(layer, length) for layer in LAYERS)


def _name(layer: LayerInfluence) -> str:
    return TEXT(f"layer {layer.layer}")


def _costs(layer_influences: tuple[LayerInfluence, ...]) -> None:
    """Draws what must wait, how long the path is, and how many multiplications a layer has."""
    st.table(
        pd.DataFrame(
            {
                TEXT["steps"]: [str(layer.sequential_steps) for layer in layer_influences],
                TEXT["path"]: [str(layer.path) for layer in layer_influences],
                TEXT["multiplications"]: [f"{layer.products:,}" for layer in layer_influences],
            },
            index=[_name(layer) for layer in layer_influences],
        ),
        border="horizontal",
    )
    st.caption(TEXT["counted"])
    st.caption(TEXT["setting"])


def influence_lines(layers: Sequence[LayerInfluence]) -> go.Figure:
    """Draws a line for each kind of layer: (distance,) influence, on a logarithmic axis down to 10^-12."""
    traces = [
        go.Scatter(
            x=np.arange(1, layer.length),
            y=layer.influence,
            mode="lines",
            name=_name(layer),
            line={"color": colour(COLOURS[layer.layer]), "width": 3},
            hovertemplate=TEXT("hover", layer=_name(layer)) + "<extra></extra>",
        )
        for layer in layers
    ]
    return go.figure(
        traces,
        margin={"l": 70, "r": 24, "t": 30, "b": 44},
        xaxis={"title": {"text": TEXT["tokens back"]}, "zeroline": False, "rangemode": "tozero"},
        yaxis={
            "title": {"text": TEXT["influence"]},
            "type": "log",
            "range": [LOWEST, 0.7],
            "exponentformat": "power",
            "dtick": 2,
        },
    )


VIEW = View("before", TEXT, draw, code=(layer_influence,), needs_model=False)
