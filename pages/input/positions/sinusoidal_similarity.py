"""Part of the view "Sinusoidal": how alike two positions are."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.sinusoids import Similarity, similarity
from pages.input.positions import sinusoidal_figures as figures
from ui import explain
from ui.players.plot import plot
from ui.text.numbers import number

MOST_CELLS = 160  # positions along a side of the similarity map


def draw_similarity(length: int, width: int, base: int) -> None:
    """The cosine of every two positions, and by distance."""
    found = _similarity(length, width, base)
    step = math.ceil(length / MOST_CELLS)
    cosines, curve = found.cosines[::step, ::step], found.cosine_by_distance
    left, right = st.columns(2, gap="medium")
    with left:
        plot(
            figures.likeness_map(cosines, step),
            key="sinusoid_likeness",
            height=420,
            name="similarity-of-positions",
            data=pd.DataFrame(cosines, columns=[f"position {i * step}" for i in range(len(cosines))]),
            alt=(
                "Cosine between the vectors of every two positions: bright along the diagonal, and the same"
                " along every parallel of it."
            ),
        )
    with right:
        plot(
            figures.likeness_curve(curve),
            key="sinusoid_by_distance",
            height=420,
            name="similarity-by-distance",
            data=pd.DataFrame({"distance": np.arange(length), "dot": found.by_distance, "cosine": curve}),
            alt="The cosine against the distance of two positions: 1 at distance 0, falling, with ripples.",
        )
    every = (
        ""
        if step == 1
        else f" The map shows the positions that are multiples of {step}; the deviation is measured over all."
    )
    st.caption(
        "$PE(p) \\cdot PE(q) = \\sum_i \\cos((p - q)\\,\\theta_i)$, since $\\sin a \\sin b + \\cos a \\cos b"
        f" = \\cos(a - b)$. Every vector has the length $\\sqrt{{d/2}}$, here {found.vector_length:.3f}, so"
        f" the cosine is the dot product divided by $d/2$ = {width // 2}.{every}"
    )
    left, right = st.columns(2, gap="medium")
    for place, name, value in ((left, "float32", found.deviation), (right, "float64", found.deviation64)):
        with place:
            formula = (
                f"of a dot product from $\\sum_i \\cos(k\\theta_i)$ at its distance $k$, over {length:,} ×"
                f" {length:,} pairs"
            )
            explain.worked(f"Largest deviation, {name}", number(value), formula)
    far, ten = length - 1, min(10, length - 1)
    again = found.most_alike
    words = (
        f"Cosine {curve[1]:.3f} at distance 1, {curve[ten]:.3f} at {ten}, {curve[far]:.3f} at {far}: the same"
        " wherever the two stand, up to rounding. "
    )
    if again > 1:
        words += (
            f"But likeness comes back: at distance {again} it is {curve[again]:.3f}. With few hands, or only"
            " fast ones, positions repeat."
        )
    else:
        words += (
            "Likeness falls with distance, though not evenly: the ripples are the fast hands that come round."
        )
    explain.takeaway(words)


@st.cache_resource(max_entries=24, show_spinner=False)
def _similarity(length: int, width: int, base: int) -> Similarity:
    return similarity(length, width, base)
