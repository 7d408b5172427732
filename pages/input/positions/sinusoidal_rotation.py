"""Part of the view "Sinusoidal": the rotation that carries position p to p + k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.sinusoids import (
    Residual,
    TurnedPair,
    rotation_matrix,
    rotation_residual,
    turned_pair,
)
from pages.input.positions import figures_sinusoidal as figures
from pages.input.positions import words_measured
from pages.input.positions.words_answers import rotation_sentence
from ui import explain, memo, widgets
from ui.players.plot import plot
from ui.text.numbers import number

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

MOST_DRAWN = 64  # dimensions of the drawn R(k)
FARTHEST, K_MOST = 512, 64


def draw_rotation(
    figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int
) -> None:
    """Draws one pair that turns."""
    with controls:
        p, k, pair = _choose_step(width // 2)
    turned = turned_pair(p, k, pair, width, base)
    with figure:
        _draw_pair(turned, p, k)
    explain.answer(rotation_sentence(turned, p, k))
    explain.measure_it(_draw_whole, width, base, k, pair)
    explain.by_hand(_draw_product, turned, p, k, pair)


def _draw_product(turned: TurnedPair, p: int, k: int, pair: int) -> None:
    """The pair times its 2 x 2 matrix, in numbers."""
    theta, sine, cosine = turned.theta, *turned.end
    st.markdown(words_measured.pair_rotates(pair, theta, p, k, turned.angle))
    st.latex(_worked(turned))
    st.markdown(words_measured.by_itself(p, k, turned.end_angle, sine, cosine))
    st.caption(words_measured.PROOF)


def _draw_pair(turned: TurnedPair, p: int, k: int) -> None:
    """Both hands."""
    tips = np.stack((turned.start, turned.end))
    plot(
        figures.turned_pair(turned.start, turned.end, p, k),
        key="sinusoid_turned",
        height=400,
        name="rotation-of-a-pair",
        data=pd.DataFrame({"position": [p, p + k], "sine": tips[:, 0], "cosine": tips[:, 1]}),
        alt=f"A clock hand at position {p} and, rotated by {turned.angle:.3f} radians, at position {p + k}.",
    )


def _choose_step(pairs: int) -> tuple[int, int, int]:
    """(p, k, pair); p + k is never before the first position."""
    p = widgets.slide("Position p", 0, FARTHEST, 5, "sinusoid_position")
    k = widgets.slide("Step k", -K_MOST, K_MOST, 2, "sinusoid_step")
    # An eighth of the way up the pairs' angles is 0.1 where the base is 10,000 and the width a multiple of 8.
    pair = widgets.slide("Pair i", 0, pairs - 1, pairs // 4, "sinusoid_pair") if pairs > 1 else 0
    if p + k < 0:
        st.caption(words_measured.no_position(k, p))
    return max(p, -k), k, pair


def _draw_whole(width: int, base: int, k: int, pair: int) -> None:
    """The whole matrix, and what is left of PE(p + k) when R(k) PE(p) is taken away."""
    st.markdown(words_measured.single_matrix(k))
    length = widgets.slide("Positions T", 2, FARTHEST, 64, "sinusoid_length")
    shown = min(width, MOST_DRAWN)
    matrix = rotation_matrix(k, width, base)[:shown, :shown]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        plot(
            figures.block_map(matrix, k, pair if 2 * pair + 2 <= shown else None),
            key="sinusoid_blocks",
            height=420,
            name=f"R-{k}",
            data=pd.DataFrame(matrix.astype(np.float32)),
            alt=(
                f"The matrix R({k}): blocks of 2 by 2 along the diagonal, zero elsewhere; the chosen pair's"
                " block is framed."
            ),
        )
    with right:
        residual = _residual(length, k, width, base)
        formula = words_measured.residual(k, length, width)
        explain.worked("Residual, float32", number(residual.float32), formula)
        explain.worked("Residual, float64", number(residual.float64), "the same in double precision")
        st.caption(
            ("" if shown == width else f"Only the first {shown} of {width} dimensions are drawn. ")
            + words_measured.ROUNDING
        )


def _worked(turned: TurnedPair) -> str:
    """The 2 x 2 product in LaTeX, three places."""
    rows = r" \\ ".join(" & ".join(f"{v:.3f}" for v in row) for row in turned.block)
    vectors = [
        r"\begin{bmatrix}" + r" \\ ".join(f"{v:.3f}" for v in pair) + r"\end{bmatrix}"
        for pair in (turned.start, turned.carried)
    ]
    return rf"\begin{{bmatrix}}{rows}\end{{bmatrix}} {vectors[0]} = {vectors[1]}"


@memo.measured(copied=True)
def _residual(length: int, k: int, width: int, base: int) -> Residual:
    return rotation_residual(length, k, width, base)
