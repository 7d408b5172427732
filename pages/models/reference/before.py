"""The view "Before": how far a recurrent layer carries a token, and attention; what a layer costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.families.influence_by_distance import LAYERS, LayerInfluence, layer_influence
from pages.models.reference import words_before as words
from pages.models.reference.figures_before import influence_lines
from ui import explain, memo, widgets
from ui.players.plot import plot

LENGTHS = (8, 16, 32, 64, 128)
FIRST = 64


def draw_before() -> None:
    """Draws a curve for each kind of layer, and a slider for the text's length."""
    length = widgets.slide_over(words.LENGTH, LENGTHS, FIRST, "reference_length", width=320)
    layers = _measured(length)
    plot(
        influence_lines(layers),
        key="reference_before",
        alt=words.alt(layers),
        height=380,
        data=pd.DataFrame(
            {"back": np.arange(1, length)} | {words.NAMES[layer.layer]: layer.influence for layer in layers}
        ),
        name="influence",
    )
    explain.answer(words.carried_far(layers))
    explain.measure_it(_costs, layers)


@memo.measured(copied=True)
def _measured(length: int) -> tuple[LayerInfluence, ...]:
    return tuple(layer_influence(layer, length) for layer in LAYERS)


def _costs(layer_influences: tuple[LayerInfluence, ...]) -> None:
    """Draws what must wait, how long the path is, and how many multiplications a layer has."""
    st.table(
        pd.DataFrame(
            {
                "sequential steps": [str(layer.sequential_steps) for layer in layer_influences],
                "path from first to last": [str(layer.path) for layer in layer_influences],
                "multiplications": [f"{layer.products:,}" for layer in layer_influences],
            },
            index=[words.NAMES[layer.layer] for layer in layer_influences],
        ),
        border="horizontal",
    )
    st.caption(words.COUNTED)
    st.caption(words.SETTING)
