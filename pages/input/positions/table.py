"""The part "Table" of "Sinusoidal": the table, and how long its waves are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from engine.parts.positions import sinusoidal_table
from pages.input.positions.maps import table_map
from pages.input.positions.sinusoid_sizes import sized
from studies.positions.sinusoids import Waves, frequencies, wavelengths, waves
from ui import content, explain, memo
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

TEXT = content.beside(__file__)
MOST_CLEAR = 200  # along a side of the table, so that each cell has a pixel of its own


def draw(figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int) -> None:
    """Draws the table as a heatmap."""
    values, hands = _table(length, width, base), waves(length, width, base)
    with figure:
        plot(
            table_map(values, TEXT["dimension"]),
            key="sinusoid_table",
            height=400,
            name=f"sinusoidal-{length}x{width}",
            data=pd.DataFrame(values, columns=[f"dimension {i}" for i in range(width)]),
            alt=TEXT("alt", length=length, width=width),
        )
    if max(length, width) > MOST_CLEAR:
        controls.caption(TEXT["aliasing"])
    shortest, longest = hands.wavelength[[0, -1]]
    explain.answer(TEXT("answer", shortest=shortest, longest=longest))
    explain.measure_it(_draw_waves, hands, width, base)


def _draw_waves(waves: Waves, width: int, base: int) -> None:
    """How long each wave is."""
    shortest, longest = waves.wavelength[[0, -1]]
    pairs = np.arange(len(waves.theta))
    plot(
        wavelength_curve(waves.wavelength, waves.length),
        key="sinusoid_waves",
        height=380,
        name="wavelengths",
        data=pd.DataFrame({"pair": pairs, "theta": waves.theta, "wavelength": waves.wavelength}),
        alt=TEXT("alt waves", pairs=len(pairs), shortest=shortest, longest=longest),
    )
    st.caption(
        TEXT(
            "wavelengths",
            shortest=shortest,
            longest=longest,
            base=base,
            width=width,
            ratio=waves.ratio,
            longer=waves.longer,
            pairs=len(pairs),
        )
    )


@memo.measured(copied=True)
def _table(length: int, width: int, base: int) -> np.ndarray:
    table: np.ndarray = sinusoidal_table(length, width, float(base)).numpy()
    return table


def wavelength_curve(values: np.ndarray, length: int) -> go.Figure:
    """Wavelengths (pair,) in positions on a logarithmic axis, and a line at the length of the text."""
    at = np.arange(len(values))
    line = go.Scatter(
        x=at,
        y=values,
        mode="lines+markers" if len(values) <= 64 else "lines",
        line={"color": colour("position"), "width": 2.5},
        showlegend=False,
        hovertemplate=f"{TEXT['hover']}<extra></extra>",
    )
    text = go.Scatter(
        x=at[[0, -1]] if len(at) > 1 else np.array([-0.5, 0.5]),
        y=[length, length],
        mode="lines",
        name=TEXT("table length", length=length),
        hoverinfo="skip",
        line={"color": colour("quiet"), "width": 1.5, "dash": "dot"},
        showlegend=True,
    )
    return go.figure(
        [line, text],
        margin={"l": 8, "r": 12, "t": 30, "b": 44},
        xaxis={"title": {"text": TEXT["pair"]}, "zeroline": False},
        yaxis=go.axis(TEXT["wavelength"], showgrid=True, type="log", exponentformat="power", dtick=1),
    )


PART = View("table", TEXT, sized(draw), code=(sinusoidal_table, frequencies, wavelengths))
