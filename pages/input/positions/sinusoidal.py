"""The view "Sinusoidal": one of four parts, the table, the many-handed clock, likeness, rotation, and its
sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from pages.input.positions import words
from pages.input.positions.shared import thousands
from pages.input.positions.sinusoidal_clock import draw_clock
from pages.input.positions.sinusoidal_rotation import draw_rotation
from pages.input.positions.sinusoidal_similarity import draw_similarity
from pages.input.positions.sinusoidal_table import draw_table
from ui import session, widgets
from ui.page_frame import Code, Words

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

SHORTEST, LONGEST = 2, 512  # positions, and dimensions
BASES = (2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
FIRST_LENGTH, FIRST_WIDTH, FIRST_BASE = 64, 64, 10_000
PART = "sinusoid_part"


@dataclass(frozen=True)
class Part:
    """A part of the view; `draw` gets the columns of the figure and of the controls, and (T, d, base).
    `length`: whether its figure depends on T.
    """

    title: str
    draw: Callable[[DeltaGenerator, DeltaGenerator, int, int, int], None]
    words: Words
    code: Code
    question: str
    length: bool = True


PARTS = {
    "table": Part(
        "Table",
        draw_table,
        words.TABLE,
        (sinusoidal_table, frequencies, wavelengths),
        "How can waves number the places?",
    ),
    "clock": Part(
        "Clock", draw_clock, words.CLOCK, (sinusoidal_table, frequencies), "How are waves like a clock?"
    ),
    "similarity": Part(
        "Likeness", draw_similarity, words.SIMILARITY, (similarity,), "Are near places more alike?"
    ),
    "rotation": Part(
        "Rotation",
        draw_rotation,
        words.ROTATION,
        (turn, rotation_matrix, rotation_residual),
        "Why sines, of all things?",
        length=False,
    ),
}


def draw_sinusoidal() -> None:
    """Draws the chosen part, its sizes beside it."""
    session.drop_endless()
    figure, controls = st.columns([3, 1], gap="medium")
    titles = {name: part.title for name, part in PARTS.items()}
    with controls:
        part = PARTS[widgets.select("What is drawn", titles, PART, hidden=True, wrap=True)]
        sizes = _choose_sizes(part.length)
    part.draw(figure, controls, *sizes)


def chosen_part() -> Part:
    """Returns the part that is drawn: named by its id or title."""
    named = st.session_state.get(PART) or st.query_params.get(PART)
    return next((part for name, part in PARTS.items() if named in (name, part.title)), PARTS["table"])


def _choose_sizes(asks_length: bool) -> tuple[int, int, int]:
    """(T, d, base) from the sliders, whatever the URL says: d is made even, with a sentence."""
    length = FIRST_LENGTH
    if asks_length:
        length = widgets.slide("Positions T", SHORTEST, LONGEST, FIRST_LENGTH, "sinusoid_length")
    hint = "d_model: even, since sines and cosines come in pairs."
    asked = widgets.slide("Width d", SHORTEST, LONGEST, FIRST_WIDTH, "sinusoid_width", step=2, hint=hint)
    hint = "10,000 in the paper, and in the engine's models. A larger base makes the slow hands slower."
    base = widgets.slide_over("Base", BASES, FIRST_BASE, "sinusoid_base", hint=hint, written=thousands)
    width = asked - asked % 2
    if asked != width:
        st.caption(
            f":material/info: The width must be even, since sines and cosines come in pairs: d = {width}"
            f" is used instead of {asked}."
        )
    return length, width, base
