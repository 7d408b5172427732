"""Parts of the view "Sinusoidal": how alike two positions are, and the rotation that carries position p to p
+ k.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.sinusoids import (
    Residual,
    Similarity,
    frequencies,
    rotation_matrix,
    rotation_residual,
    similarity,
    turn,
)
from pages.input.positions import figures
from ui import explain
from ui.players.plot import plot
from ui.text.numbers import number

MOST_CELLS = 160  # positions along a side of the similarity map
MOST_DRAWN = 64  # dimensions of the drawn R(k)
FARTHEST, K_MOST = 512, 64


def draw_similarity(length: int, width: int, base: int) -> None:
    found = _similarity(length, width, base)
    step = math.ceil(length / MOST_CELLS)
    cosines = found.dots[::step, ::step] / (width / 2)
    curve = found.by_distance / (width / 2)
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
        f" = \\cos(a - b)$. Every vector has the length $\\sqrt{{d/2}}$, here {math.sqrt(width / 2):.3f}, so"
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
    again = int(np.argmax(curve[1:])) + 1
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
    explain.reading(
        see=(
            "The cosine of every two position vectors as a map, and, since only the distance counts, as a"
            " curve. Along each parallel of the diagonal the map has one value."
        ),
        why=(
            "Attention compares by dot products. These vectors offer it 'how far apart' for nothing. But not"
            " in which direction: $k$ ahead and $k$ back look equally alike, until learned matrices turn"
            " queries and keys apart."
        ),
        attempt=(
            "Widen d: the curve gets smoother. Make the base small: the curve comes back up. Make it very"
            " large: everything looks alike, since most hands stand still."
        ),
    )
    explain.show_code(similarity)


@st.cache_resource(max_entries=24, show_spinner=False)
def _similarity(length: int, width: int, base: int) -> Similarity:
    return similarity(length, width, base)


# The rotation -----------------------------------------------------------------------------------


def draw_rotation(length: int, width: int, base: int) -> None:
    p, k, pair = _choose_step(width // 2)
    theta = float(frequencies(width, base)[pair])
    left, right = st.columns([2, 3], gap="medium")
    with left:
        start, end = ((math.sin(x * theta), math.cos(x * theta)) for x in (p, p + k))
        plot(
            figures.turned_pair(start, end, p, k),
            key="sinusoid_turned",
            height=340,
            name="rotation-of-a-pair",
            data=pd.DataFrame(
                {"position": [p, p + k], "sine": [start[0], end[0]], "cosine": [start[1], end[1]]}
            ),
            alt=(
                f"A clock's hand at position {p} and, turned by {k * theta:.3f} radians, at position {p + k}."
            ),
        )
    with right:
        block = turn(k * theta)
        st.markdown(
            f"Pair {pair} turns by $\\theta$ = {theta:.4g} radians a position. From position {p} to {p + k}"
            f" that is $k\\theta$ = {k * theta:.4g}:"
        )
        st.latex(_worked(block, start, block @ np.array(start)))
        st.markdown(
            f"And position {p + k} by itself: $(\\sin {(p + k) * theta:.4g},\\ \\cos {(p + k) * theta:.4g})$"
            f" = ({end[0]:.3f}, {end[1]:.3f})."
        )
        st.caption(
            "The addition theorem is the whole proof: $\\sin(a + b) = \\sin a \\cos b + \\cos a \\sin b$ and"
            " $\\cos(a + b) = \\cos a \\cos b - \\sin a \\sin b$. The matrix holds $k$ and $\\theta$, but no"
            " $p$."
        )
    _whole(length, width, base, k, pair)
    explain.takeaway(
        f"One matrix, $R({k})$, carries *every* position to the one {abs(k)}"
        f" {'further on' if k >= 0 else 'back'}. So a linear map, which is all that $W_Q$ and $W_K$ are, can"
        " look for “the token so many places back” without knowing where it stands. RoPE makes this rotation"
        " its whole idea."
    )
    explain.reading(
        see=(
            "On top one pair: the hand at $p$, the hand at $p + k$, and the 2 × 2 matrix that turns the one"
            " into the other. Below the whole $R(k)$: one such block for each pair, and zeros."
        ),
        why=(
            "Vaswani et al. (2017, section 3.5) chose sines for this reason: $PE(p + k)$ is a linear function"
            " of $PE(p)$, the same for all $p$, so relative positions can be learned."
        ),
        attempt=(
            "Move $p$: the hands move, the matrix does not. Move $k$: the first blocks spin, the last ones"
            " hardly leave the identity. Compare the residuals at T = 512 with those at 64."
        ),
    )
    explain.show_code(turn, rotation_matrix, rotation_residual)


def _choose_step(pairs: int) -> tuple[int, int, int]:
    """(p, k, pair); p + k is never before the first position."""
    one, two, three = st.columns(3, gap="medium")
    with one:
        p = _number("Position p", 0, FARTHEST, 5, "sinusoid_position")
    with two:
        k = _number("Step k", -K_MOST, K_MOST, 2, "sinusoid_step")
    with three:
        # An eighth of the way up the pairs' angles is 0.1 where the base is 10,000 and the width a multiple
        # of 8.
        pair = _number("Pair i", 0, pairs - 1, pairs // 4, "sinusoid_pair") if pairs > 1 else 0
    if p + k < 0:
        st.caption(f":material/info: There is no position before 0, so p = {-k} is used instead of {p}.")
    return max(p, -k), k, pair


def _whole(length: int, width: int, base: int, k: int, pair: int) -> None:
    """The whole matrix, and what is left of PE(p + k) when R(k) PE(p) is taken away."""
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
        formula = (
            f"the largest $|R({k})\\,PE(p) - PE(p {k:+d})|$ over {length} positions and {width} dimensions"
        )
        explain.worked("Residual, float32", number(residual.float32), formula)
        explain.worked("Residual, float64", number(residual.float64), "the same in double precision")
        st.caption(
            ("" if shown == width else f"Drawn are the first {shown} of {width} dimensions. ")
            + "What is left is rounding: float32 keeps seven digits of an angle, so a large angle has fewer"
            " of them behind the point."
        )


def _number(label: str, low: int, high: int, first: int, key: str) -> int:
    held = st.session_state.get(key)
    if isinstance(held, int) and not low <= held <= high:
        st.session_state[key] = min(max(held, low), high)  # another width has fewer pairs
    value = st.slider(label, low, high, first, key=key, bind="query-params")
    return value if isinstance(value, int) and low <= value <= high else first


def _worked(block: np.ndarray, start: tuple[float, float], end: np.ndarray) -> str:
    """The 2 x 2 product in LaTeX, three places."""
    rows = r" \\ ".join(" & ".join(f"{v:.3f}" for v in row) for row in block)
    vectors = [
        r"\begin{bmatrix}" + r" \\ ".join(f"{v:.3f}" for v in pair) + r"\end{bmatrix}"
        for pair in (start, end)
    ]
    return rf"\begin{{bmatrix}}{rows}\end{{bmatrix}} {vectors[0]} = {vectors[1]}"


@st.cache_data(max_entries=64, show_spinner=False)
def _residual(length: int, k: int, width: int, base: int) -> Residual:
    return rotation_residual(length, k, width, base)
