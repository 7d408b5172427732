"""Part of the view "Sinusoidal": the table, and how long its waves are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.sinusoids import waves
from engine.parts.positions import sinusoidal_table
from pages.input.positions import sinusoidal_figures as figures
from ui import explain
from ui.players.plot import plot

MOST_CLEAR = 200  # along a side of the table, so that each cell has a pixel of its own


def draw_table(length: int, width: int, base: int) -> None:
    """The table as a heatmap, and the wavelength of each pair."""
    values, found = _table(length, width, base), waves(length, width, base)
    shortest, longest = found.wavelength[[0, -1]]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        plot(
            figures.table_map(values),
            key="sinusoid_table",
            height=440,
            name=f"sinusoidal-{length}x{width}",
            data=pd.DataFrame(values, columns=[f"dimension {i}" for i in range(width)]),
            alt=(
                f"The sinusoidal table: {length} positions down, {width} dimensions to the right; waves that"
                " get slower from left to right."
            ),
        )
    pairs = np.arange(len(found.theta))
    with right:
        plot(
            figures.wavelength_curve(found.wavelength, length),
            key="sinusoid_waves",
            height=440,
            name="wavelengths",
            data=pd.DataFrame({"pair": pairs, "theta": found.theta, "wavelength": found.wavelength}),
            alt=(
                f"The wavelength of each of {len(pairs)} pairs, in positions, on a logarithmic axis, from"
                f" {shortest:.3g} to {longest:.3g}."
            ),
        )
    st.caption(
        "Pair $i$ is dimensions $2i$ (sine) and $2i + 1$ (cosine). Its wavelength is $2\\pi / \\theta_i ="
        f" 2\\pi \\cdot base^{{2i/d}}$: from $2\\pi$ = {shortest:.3f} positions to $2\\pi \\cdot"
        f" {base}^{{({width}-2)/{width}}}$ = {longest:,.1f}. On a logarithmic axis that is a straight line:"
        f" each is {found.ratio:.3f} times the one before."
    )
    if max(length, width) > MOST_CLEAR:
        st.caption(
            ":material/info: There are more cells than pixels: fine bands on the left may come from the"
            " screen. Drag over a part to see it as it is."
        )
    explain.takeaway(
        f"{found.complete} of {len(pairs)} pairs go round at least once within {length} positions,"
        f" {found.longer} do not. The fast ones tell neighbours apart; the slow ones, which hardly move from"
        " one position to the next, tell early from late. The table has no parameters and could go on for"
        " ever."
    )


@st.cache_data(max_entries=64, show_spinner=False)
def _table(length: int, width: int, base: int) -> np.ndarray:
    found: np.ndarray = sinusoidal_table(length, width, float(base)).numpy()
    return found
