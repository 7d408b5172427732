"""The part "Similarity" of "Sinusoidal": how alike two positions are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pages.input.positions.maps import cosine_map
from pages.input.positions.sinusoid_sizes import sized
from studies.positions.sinusoids import Similarity, similarity
from ui import content, explain, memo
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import number

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

TEXT = content.beside(__file__)
MOST_CELLS = 160  # positions along a side of the similarity map


def draw(figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int) -> None:
    """Draws the cosine of two positions by their distance."""
    similarity = _similarity(length, width, base)
    with figure:
        plot(
            similarity_curve(similarity.cosine_by_distance),
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
            alt=TEXT["alt"],
        )
    explain.answer(_answer(similarity, length))
    explain.measure_it(_draw_map, similarity, length, width)


def _answer(similarity: Similarity, length: int) -> str:
    curve, again, far = similarity.cosine_by_distance, similarity.most_alike, length - 1
    if again > 1:
        return TEXT("repeats", near=curve[1], again=again, cosine=curve[again])
    ten = min(10, far)
    return TEXT("falls", near=curve[1], ten=ten, at_ten=curve[ten], far=far, at_far=curve[far])


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
        alt=TEXT["alt map"],
    )
    said = [TEXT("dot products", norm=similarity.vector_length, half=width // 2), TEXT["ripples"]]
    if step > 1:
        said.insert(1, TEXT("every step", step=step))
    st.caption(" ".join(said))
    deviations = {"float32": similarity.deviation, "float64": similarity.deviation64}
    for column, (precision, value) in zip(st.columns(2, gap="medium"), deviations.items(), strict=True):
        with column:
            label = TEXT("deviation", precision=precision)
            explain.worked(label, number(value), TEXT("deviation of what", length=length))


@memo.measured()
def _similarity(length: int, width: int, base: int) -> Similarity:
    return similarity(length, width, base)


def similarity_curve(cosines: np.ndarray) -> go.Figure:
    """Draws cosine by distance (distance,)."""
    line = go.Scatter(
        x=np.arange(len(cosines)),
        y=cosines.astype(np.float32),
        mode="lines",
        line={"color": colour("position"), "width": 2.5},
        hovertemplate=f"{TEXT['hover']}<extra></extra>",
    )
    return go.figure(
        [line],
        margin={"l": 8, "r": 12, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": TEXT["distance"]}, "zeroline": False},
        yaxis=go.axis(
            TEXT["cosine"],
            showgrid=True,
            range=[min(-0.3, float(cosines.min()) - 0.05), 1.06],
            zeroline=True,
            zerolinecolor=colour("quiet"),
        ),
    )


PART = View("similarity", TEXT, sized(draw), code=(similarity,))
