"""The sizes of a sinusoidal table, chosen beside each part of "Sinusoidal"."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from ui import content, session, widgets

TEXT = content.beside(__file__)
SHORTEST, LONGEST = 2, 512  # positions, and dimensions
BASES = (2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
FIRST_LENGTH, FIRST_WIDTH, FIRST_BASE = 64, 64, 10_000
Draw = Callable[..., None]  # gets the columns of the figure and of the controls, and (T, d, base)


def sized(draw: Draw, asks_length: bool = True) -> Callable[[], None]:
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
    length = choose_length() if asks_length else FIRST_LENGTH
    hint = TEXT["width hint"]
    chosen = widgets.slide(TEXT["width"], SHORTEST, LONGEST, FIRST_WIDTH, "sinusoid_width", step=2, hint=hint)
    base = widgets.slide_over(
        TEXT["base"], BASES, FIRST_BASE, "sinusoid_base", hint=TEXT["base hint"], written="{:,}".format
    )
    width = chosen - chosen % 2
    if chosen != width:
        st.caption(TEXT("even width", width=width, requested=chosen))
    return length, width, base


def choose_length() -> int:
    """Returns T, how many positions the table has."""
    return widgets.slide(TEXT["length"], SHORTEST, LONGEST, FIRST_LENGTH, "sinusoid_length")
