"""The view "Sinusoidal": the table and its wavelengths, and the many-handed clock. Similarity and rotation
are in `positions_rotation`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.sinusoids import frequencies, wavelengths
from engine.parts.positions import sinusoidal_table
from pages.input.positions import figures
from pages.input.positions.clock import clock
from pages.input.positions.order import pick
from pages.input.positions.rotation import draw_rotation, draw_similarity
from ui import explain, state
from ui.players.plot import plot

SHORTEST, LONGEST = 2, 512  # positions, and dimensions
BASES = (2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MOST_CLEAR = 200  # along a side of the table, so that each cell has a pixel of its own
FIRST_LENGTH, FIRST_WIDTH, FIRST_BASE = 64, 64, 10_000


def draw_sinusoidal() -> None:
    state.drop_endless()
    length, width, base = _choose_sizes()
    PARTS[pick("What is drawn", list(PARTS), "Table", "sinusoid_part", hidden=True)](length, width, base)


def _choose_sizes() -> tuple[int, int, int]:
    """(T, d, base) from the sliders, whatever the URL says: d is made even, with a sentence."""
    left, middle, right = st.columns(3, gap="medium")
    with left:
        length = st.slider(
            "Positions T", SHORTEST, LONGEST, FIRST_LENGTH, key="sinusoid_length", bind="query-params"
        )
    with middle:
        hint = "d_model: even, since sines and cosines come in pairs."
        width = st.slider(
            "Width d", SHORTEST, LONGEST, FIRST_WIDTH, 2, key="sinusoid_width", bind="query-params", help=hint
        )
    with right:
        base = st.select_slider(
            "Base",
            BASES,
            FIRST_BASE,
            key="sinusoid_base",
            bind="query-params",
            format_func=lambda b: f"{b:,}",
            help=(
                "10,000 in the paper, and in the engine's models. A larger base makes the slow hands slower."
            ),
        )
    length, asked = (_within(v, first) for v, first in ((length, FIRST_LENGTH), (width, FIRST_WIDTH)))
    if asked % 2:
        st.caption(
            f":material/info: The width must be even, since sines and cosines come in pairs: d = {asked - 1}"
            f" is used instead of {asked}."
        )
    return length, asked - asked % 2, base if base in BASES else FIRST_BASE


def _within(value: object, first: int) -> int:
    return (
        min(max(value, SHORTEST), LONGEST)
        if isinstance(value, int) and not isinstance(value, bool)
        else first
    )


# The table --------------------------------------------------------------------------------------


def _draw_table(length: int, width: int, base: int) -> None:
    values = _table(length, width, base)
    waves = wavelengths(width, base)
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
    with right:
        plot(
            figures.wavelength_curve(waves, length),
            key="sinusoid_waves",
            height=440,
            name="wavelengths",
            data=pd.DataFrame(
                {"pair": np.arange(len(waves)), "theta": frequencies(width, base), "wavelength": waves}
            ),
            alt=(
                f"The wavelength of each of {len(waves)} pairs, in positions, on a logarithmic axis, from"
                f" {waves[0]:.3g} to {waves[-1]:.3g}."
            ),
        )
    st.caption(
        "Pair $i$ is dimensions $2i$ (sine) and $2i + 1$ (cosine). Its wavelength is $2\\pi / \\theta_i ="
        f" 2\\pi \\cdot base^{{2i/d}}$: from $2\\pi$ = {waves[0]:.3f} positions to $2\\pi \\cdot"
        f" {base}^{{({width}-2)/{width}}}$ = {waves[-1]:,.1f}. On a logarithmic axis that is a straight line:"
        f" each is {base ** (2 / width):.3f} times the one before."
    )
    if max(length, width) > MOST_CLEAR:
        st.caption(
            ":material/info: There are more cells than pixels: fine bands on the left may come from the"
            " screen. Drag over a part to see it as it is."
        )
    longer = int((waves > length).sum())
    explain.takeaway(
        f"{len(waves) - longer} of {len(waves)} pairs go round at least once within {length} positions,"
        f" {longer} do not. The fast ones tell neighbours apart; the slow ones, which hardly move from one"
        " position to the next, tell early from late. The table has no parameters and could go on for ever."
    )
    explain.reading(
        see=(
            "Each position (a row) gets a vector of sines and cosines: $PE(p, 2i) = \\sin(p\\,\\theta_i)$ and"
            " $PE(p, 2i+1) = \\cos(p\\,\\theta_i)$ with $\\theta_i = base^{-2i/d}$ (Vaswani et al. 2017,"
            " section 3.5, where the base is 10,000). Beside it: how many positions each wave is long."
        ),
        why=(
            "It is added to the embeddings before the first block, so that the same word is another vector in"
            " another place. Wavelengths that grow by a constant factor give every scale of distance its own"
            " pair of dimensions."
        ),
        attempt=(
            "Make the base 2 or 5 and see all waves become fast: soon positions look alike again. Make the"
            " base a million: most of the width then hardly changes within the text."
        ),
    )
    explain.show_code(sinusoidal_table, frequencies, wavelengths)


@st.cache_data(max_entries=64, show_spinner=False)
def _table(length: int, width: int, base: int) -> np.ndarray:
    found: np.ndarray = sinusoidal_table(length, width, float(base)).numpy()
    return found


# The clock --------------------------------------------------------------------------------------


def _draw_clock(length: int, width: int, base: int) -> None:
    thetas = frequencies(width, base)
    clock(thetas, length, key="clock_hands")
    waves = wavelengths(width, base)
    hands = (
        "one hand"
        if len(waves) == 1
        else f"{len(waves)} hands at once, as time is off hours, minutes and seconds"
    )
    explain.takeaway(
        f"A position is read off {hands}. The fastest hand needs {waves[0]:.2f} positions for a round, the"
        f" slowest {waves[-1]:,.1f}. A binary counter does the same with digits: the last one flips at every"
        " step, each one before it half as often."
    )
    explain.reading(
        see=(
            "A hand for each frequency $\\theta_i$. It starts upright at position 0 and turns by $\\theta_i$"
            " radians a position. Its tip is $(\\sin p\\theta_i, \\cos p\\theta_i)$: exactly the two numbers"
            " of pair $i$ in $PE(p)$. The longest hand is the fastest."
        ),
        why=(
            "Digits jump: from 7 to 8 all of 0111 turns into 1000, although the two are neighbours. Hands"
            " move smoothly, so that neighbours get similar vectors, and all hands together still tell every"
            " position from every other."
        ),
        attempt=(
            "Step by one and see which hands you can see move. Play, and compare the first dials with the"
            " last digits. Make the width 2: one hand is left, and after 6.28 positions it points almost"
            " where it was."
        ),
    )
    explain.show_code(sinusoidal_table, frequencies)


PARTS = {"Table": _draw_table, "Clock": _draw_clock, "Similarity": draw_similarity, "Rotation": draw_rotation}
