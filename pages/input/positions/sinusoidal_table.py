"""Part of the view "Sinusoidal": the table, and how long its waves are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.sinusoids import Waves, waves
from engine.parts.positions import sinusoidal_table
from pages.input.positions import figures_sinusoidal as figures
from pages.input.positions import words_measured
from pages.input.positions.maps import table_map
from pages.input.positions.words_answers import waves_sentence
from ui import explain, memo
from ui.players.plot import plot

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

MOST_CLEAR = 200  # along a side of the table, so that each cell has a pixel of its own


def draw_table(figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int) -> None:
    """Draws the table as a heatmap."""
    values, hands = _table(length, width, base), waves(length, width, base)
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
        controls.caption(words_measured.ALIASING)
    explain.answer(waves_sentence(hands))
    explain.measure_it(_draw_waves, hands, width, base)


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
    st.caption(words_measured.wavelengths(waves, shortest, longest, base, width, len(pairs)))


@memo.measured(copied=True)
def _table(length: int, width: int, base: int) -> np.ndarray:
    table: np.ndarray = sinusoidal_table(length, width, float(base)).numpy()
    return table
