"""Part of the view "Sinusoidal": how alike two positions are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.sinusoids import Similarity, similarity
from pages.input.positions import figures_sinusoidal as figures
from pages.input.positions import words_measured
from pages.input.positions.maps import cosine_map
from pages.input.positions.words_answers import similarity_sentence
from ui import explain, memo
from ui.players.plot import plot
from ui.text.numbers import number

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

MOST_CELLS = 160  # positions along a side of the similarity map


def draw_similarity(
    figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int
) -> None:
    """Draws the cosine of two positions by their distance."""
    similarity = _similarity(length, width, base)
    with figure:
        plot(
            figures.likeness_curve(similarity.cosine_by_distance),
            key="sinusoid_by_distance",
            height=400,
            name="similarity-by-distance",
            data=pd.DataFrame(
                {
                    "distance": np.arange(length),
                    "dot": similarity.by_distance,
                    "cosine": similarity.cosine_by_distance,
                }
            ),
            alt=(
                "The cosine against the distance between two positions: 1 at distance 0, falling, with"
                " ripples."
            ),
        )
    explain.answer(similarity_sentence(similarity, length))
    explain.measure_it(_draw_map, similarity, length, width)


def _draw_map(similarity: Similarity, length: int, width: int) -> None:
    """The cosine of every two positions, and how far it is from theory."""
    step = math.ceil(length / MOST_CELLS)
    cosines = similarity.cosines[::step, ::step]
    plot(
        cosine_map(cosines, step),
        key="sinusoid_likeness",
        height=440,
        name="similarity-of-positions",
        data=pd.DataFrame(cosines, columns=[f"position {i * step}" for i in range(len(cosines))]),
        alt=(
            "Cosine between the vectors of every pair of positions: largest along the diagonal, and the same"
            " along every parallel to it."
        ),
    )
    every = "" if step == 1 else words_measured.every_step(step)
    st.caption(words_measured.dot_products(similarity, width // 2, every))
    left, right = st.columns(2, gap="medium")
    for column, name, value in (
        (left, "float32", similarity.deviation),
        (right, "float64", similarity.deviation64),
    ):
        with column:
            formula = words_measured.deviation(length)
            explain.worked(f"Largest deviation, {name}", number(value), formula)


@memo.measured()
def _similarity(length: int, width: int, base: int) -> Similarity:
    return similarity(length, width, base)
