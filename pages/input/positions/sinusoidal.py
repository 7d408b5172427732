"""The view "Sinusoidal": one of four parts, the table, the many-handed clock, likeness, rotation, and its
sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from engine.measure.positions.sinusoids import (
    frequencies,
    rotation_matrix,
    rotation_residual,
    similarity,
    turn,
    wavelengths,
)
from engine.parts.positions import sinusoidal_table
from pages.input.positions import words, words_measured
from pages.input.positions.shared import thousands
from pages.input.positions.sinusoidal_clock import draw_clock
from pages.input.positions.sinusoidal_rotation import draw_rotation
from pages.input.positions.sinusoidal_similarity import draw_similarity
from pages.input.positions.sinusoidal_table import draw_table
from ui import session, widgets
from ui.view_parts import Part

SHORTEST, LONGEST = 2, 512  # positions, and dimensions
BASES = (2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
FIRST_LENGTH, FIRST_WIDTH, FIRST_BASE = 64, 64, 10_000
Draw = Callable[..., None]  # gets the columns of the figure and of the controls, and (T, d, base)


def _sized(draw: Draw, asks_length: bool = True) -> Callable[[], None]:
    """Returns what draws a part with its sizes beside it. `asks_length`: its figure depends on T."""

    def drawn() -> None:
        session.drop_endless()
        figure, controls = st.columns([3, 1], gap="medium")
        with controls:
            sizes = _choose_sizes(asks_length)
        draw(figure, controls, *sizes)

    return drawn


def _choose_sizes(asks_length: bool) -> tuple[int, int, int]:
    """(T, d, base) from the sliders, whatever the URL says: d is made even, with a sentence."""
    length = FIRST_LENGTH
    if asks_length:
        length = widgets.slide("Positions T", SHORTEST, LONGEST, FIRST_LENGTH, "sinusoid_length")
    hint = "d_model: even, since sines and cosines come in pairs."
    chosen = widgets.slide("Width d", SHORTEST, LONGEST, FIRST_WIDTH, "sinusoid_width", step=2, hint=hint)
    hint = words_measured.BASE_HINT
    base = widgets.slide_over("Base", BASES, FIRST_BASE, "sinusoid_base", hint=hint, written=thousands)
    width = chosen - chosen % 2
    if chosen != width:
        st.caption(words_measured.even_width(width, chosen))
    return length, width, base


PARTS = {
    "table": Part(
        "Table",
        _sized(draw_table),
        words.TABLE,
        (sinusoidal_table, frequencies, wavelengths),
        words.TABLE_ASKED,
    ),
    "clock": Part(
        "Clock", _sized(draw_clock), words.CLOCK, (sinusoidal_table, frequencies), words.CLOCK_ASKED
    ),
    "similarity": Part(
        "Similarity", _sized(draw_similarity), words.SIMILARITY, (similarity,), words.SIMILARITY_ASKED
    ),
    "rotation": Part(
        "Rotation",
        _sized(draw_rotation, asks_length=False),
        words.ROTATION,
        (turn, rotation_matrix, rotation_residual),
        words.ROTATION_ASKED,
    ),
}
