"""The part "Rotation" of "Sinusoidal": the rotation that carries position p to p + k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pages.input.positions.maps import signed_map
from pages.input.positions.sinusoid_sizes import choose_length, sized
from studies.positions.sinusoids import (
    Residual,
    TurnedPair,
    rotation_matrix,
    rotation_residual,
    turn,
    turned_pair,
)
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import number

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

TEXT = content.beside(__file__)
MOST_DRAWN = 64  # dimensions of the drawn R(k)
FARTHEST, K_MOST = 512, 64


def draw(figure: DeltaGenerator, controls: DeltaGenerator, length: int, width: int, base: int) -> None:
    """Draws one pair that turns."""
    with controls:
        p, k, pair = _choose_step(width // 2)
    turned = turned_pair(p, k, pair, width, base)
    with figure:
        _draw_pair(turned, p, k)
    (x, y), (u, v) = turned.start, turned.end
    explain.answer(TEXT("answer", k=k, angle=turned.angle, x=x, y=y, p=p, u=u, v=v, q=p + k))
    explain.measure_it(_draw_whole, width, base, k, pair)
    explain.by_hand(_draw_product, turned, p, k, pair)


def _draw_product(turned: TurnedPair, p: int, k: int, pair: int) -> None:
    """The pair times its 2 x 2 matrix, in numbers."""
    sine, cosine = turned.end
    st.markdown(TEXT("pair rotates", pair=pair, theta=turned.theta, p=p, q=p + k, angle=turned.angle))
    st.latex(_worked(turned))
    st.markdown(TEXT("by itself", q=p + k, angle=turned.end_angle, sine=sine, cosine=cosine))
    st.caption(TEXT["proof"])


def _draw_pair(turned: TurnedPair, p: int, k: int) -> None:
    """Both hands."""
    tips = np.stack((turned.start, turned.end))
    plot(
        two_hands(turned.start, turned.end, p, k),
        key="sinusoid_turned",
        height=400,
        name="rotation-of-a-pair",
        data=pd.DataFrame({"position": [p, p + k], "sine": tips[:, 0], "cosine": tips[:, 1]}),
        alt=TEXT("alt", p=p, q=p + k, angle=turned.angle),
    )


def _choose_step(pairs: int) -> tuple[int, int, int]:
    """(p, k, pair); p + k is never before the first position."""
    p = widgets.slide(TEXT["position"], 0, FARTHEST, 5, "sinusoid_position")
    k = widgets.slide(TEXT["step"], -K_MOST, K_MOST, 2, "sinusoid_step")
    # An eighth of the way up the pairs' angles is 0.1 where the base is 10,000 and the width a multiple of 8.
    pair = widgets.slide(TEXT["pair"], 0, pairs - 1, pairs // 4, "sinusoid_pair") if pairs > 1 else 0
    if p + k < 0:
        st.caption(TEXT("no position", p=-k, requested=p))
    return max(p, -k), k, pair


def _draw_whole(width: int, base: int, k: int, pair: int) -> None:
    """The whole matrix, and what is left of PE(p + k) when R(k) PE(p) is taken away."""
    st.markdown(TEXT("one matrix ahead" if k >= 0 else "one matrix back", k=k, step=abs(k)))
    length = choose_length()
    shown = min(width, MOST_DRAWN)
    matrix = rotation_matrix(k, width, base)[:shown, :shown]
    left, right = st.columns([3, 2], gap="medium")
    with left:
        plot(
            block_map(matrix, k, pair if 2 * pair + 2 <= shown else None),
            key="sinusoid_blocks",
            height=420,
            name=f"R-{k}",
            data=pd.DataFrame(matrix.astype(np.float32)),
            alt=TEXT("alt blocks", k=k),
        )
    with right:
        residual = _residual(length, k, width, base)
        of_what = TEXT("residual of what", k=k, length=length, width=width)
        explain.worked(TEXT("residual", precision="float32"), number(residual.float32), of_what)
        explain.worked(TEXT("residual", precision="float64"), number(residual.float64), TEXT["the same"])
        said = [] if shown == width else [TEXT("first dimensions", shown=shown, width=width)]
        st.caption(" ".join([*said, TEXT["rounding"]]))


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


def two_hands(start: np.ndarray, end: np.ndarray, p: int, k: int) -> go.Figure:
    """Draws the pair (sin, cos) of position p and of p + k as hands of a clock: right is the sine, up the
    cosine.
    """
    round_ = np.linspace(0, 2 * np.pi, 121)
    circle = go.Scatter(
        x=np.sin(round_),
        y=np.cos(round_),
        mode="lines",
        line={"color": colour("quiet", 45), "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )
    hands = [
        go.Scatter(
            x=[0, tip[0]],
            y=[0, tip[1]],
            mode="lines+markers",
            name=name,
            line={"color": colour(part), "width": 4, "dash": dash},
            marker={"size": [0, 12], "color": colour(part), "opacity": 1},
            hovertemplate=f"{name}: (%{{x:.3f}}, %{{y:.3f}})<extra></extra>",
        )
        for tip, name, part, dash in (
            (start, TEXT("at", p=p), "residual", "dot"),
            (end, TEXT("at", p=p + k), "position", "solid"),
        )
    ]
    return go.figure(
        [circle, *hands],
        margin={"l": 8, "r": 8, "t": 30, "b": 40},
        xaxis={"title": {"text": TEXT["sine"]}, "range": [-1.15, 1.15], "nticks": 5, "zeroline": True},
        yaxis=go.axis(
            TEXT["cosine"], showgrid=True, range=[-1.15, 1.15], nticks=5, scaleanchor="x", zeroline=True
        ),
    )


def block_map(matrix: np.ndarray, k: int, pair: int | None) -> go.Figure:
    """Draws R(k) (dimension, dimension), the first row on top; a frame around the block of `pair` where that
    is drawn.
    """
    frame = {"type": "rect", "line": {"color": colour("attention"), "width": 3}}
    corners = (
        []
        if pair is None
        else [
            frame | {"x0": 2 * pair - 0.5, "x1": 2 * pair + 1.5, "y0": 2 * pair - 0.5, "y1": 2 * pair + 1.5}
        ]
    )
    return signed_map(matrix, TEXT["from"], TEXT["to"], TEXT("hover", k=k), shapes=corners)


PART = View("rotation", TEXT, sized(draw, asks_length=False), code=(turn, rotation_matrix, rotation_residual))
