"""Part of the view "Sinusoidal": the table, and how long its waves are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.sinusoids import Waves, waves
from engine.parts.positions import sinusoidal_table
from pages.input.positions import figures_sinusoidal as figures
from pages.input.positions.figures_learned import table_map
from pages.input.positions.words_answers import waves_sentence
from ui import explain
from ui.players.plot import plot

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

MOST_CLEAR = 200  # along a side of the table, so that each cell has a pixel of its own


def draw_table(figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int) -> None:
    """Draws the table as a heatmap."""
    values, found = _table(length, width, base), waves(length, width, base)
    with figure:
        plot(
            table_map(values, "dimension (even: sine, odd: cosine)"),
            key="sinusoid_table",
            height=400,
            name=f"sinusoidal-{length}x{width}",
            data=pd.DataFrame(values, columns=[f"dimension {i}" for i in range(width)]),
            alt=(
                f"The sinusoidal table: {length} positions down, {width} dimensions across; waves get slower"
                " from left to right."
            ),
        )
    if max(length, width) > MOST_CLEAR:
        controls.caption(
            ":material/info: More cells than pixels: fine bands may be artefacts (aliasing). Drag over a"
            " region to zoom in."
        )
    explain.answer(waves_sentence(found))
    explain.measure_it(_draw_waves, found, width, base)


def _draw_waves(waves: Waves, width: int, base: int) -> None:
    """How long each wave is."""
    shortest, longest = waves.wavelength[[0, -1]]
    pairs = np.arange(len(waves.theta))
    plot(
        figures.wavelength_curve(waves.wavelength, waves.length),
        key="sinusoid_waves",
        height=380,
        name="wavelengths",
        data=pd.DataFrame({"pair": pairs, "theta": waves.theta, "wavelength": waves.wavelength}),
        alt=(
            f"The wavelength of each of {len(pairs)} pairs, in positions, on a logarithmic axis, from"
            f" {shortest:.3g} to {longest:.3g}."
        ),
    )
    st.caption(
        "Pair $i$ is dimensions $2i$ (sine) and $2i + 1$ (cosine). Its wavelength is $2\\pi / \\theta_i ="
        f" 2\\pi \\cdot base^{{2i/d}}$: from $2\\pi$ = {shortest:.3f} positions to $2\\pi \\cdot"
        f" {base}^{{({width}-2)/{width}}}$ = {longest:,.1f}. On a logarithmic axis that is a straight line:"
        f" each is {waves.ratio:.3f} times the one before. {waves.longer} of {len(pairs)} are longer than the"
        " table. The table has no parameters and could be extended indefinitely."
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _table(length: int, width: int, base: int) -> np.ndarray:
    found: np.ndarray = sinusoidal_table(length, width, float(base)).numpy()
    return found
