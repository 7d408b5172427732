"""The part "Backward pass": the gradient of one prediction's loss, by state and token, and its beginning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.inside.shapes.gradient import HEIGHT, SMALL, backpropagated, draw_matrices, three
from studies.shapes.backward import Backward, backward, trainable_twin
from ui import content, explain
from ui.figures import specs as go
from ui.figures.axes import MONO, MOST, rows_axis, token_axis
from ui.figures.labels import LETTER, MOST_LETTERS, crowded, plain, short
from ui.figures.theme import SEQUENTIAL, colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
TOKENS = 6  # whose error at the logits is drawn
DECADES = 3  # of gradients that are told apart by their colour
WIDE = 60.0  # times the shortest bar: a straight scale shows both
NUMBERED = 22  # bars that have room for their numbers
LANES, BARS = (0.0, 0.76), (0.79, 1.0)  # shares of the width
NARROW = (0.0, 0.6), (0.64, 1.0)  # likewise on a phone
NARROW_LABELS = 12  # tokens that have room for their labels there
ROOM = 0.3  # of all tokens, after the chosen one, beside which there is room for a note


def draw(_: DeltaGenerator, subject: Subject) -> None:
    """Draws the gradient of one prediction's loss, by state and token, and the error that it begins with."""
    if (prediction := backpropagated(subject, strip=True)) is None:
        return
    labels, token = subject.labels, subject.vocabulary[prediction.target]
    entering, arriving = (three(float(prediction.totals[i])) for i in (-1, 0))
    wide, narrow = st.columns([5, 2], gap="medium")
    with wide:
        plot(
            lanes(prediction, labels),
            key="shapes_lanes",
            height=HEIGHT,
            name="backward-pass",
            data=pd.DataFrame(prediction.norms, columns=[f"{i}: {t}" for i, t in enumerate(labels)]).assign(
                state=prediction.states, all=prediction.totals
            ),
            alt=TEXT(
                "alt lanes",
                reached=prediction.reached,
                tokens=len(prediction.ids),
                entering=entering,
                arriving=arriving,
            ),
        )
    shown = prediction.largest_errors(TOKENS)
    with narrow:
        plot(
            error_bars([subject.vocabulary[i] for i in shown], prediction.error[shown]),
            key="shapes_error",
            height=HEIGHT,
            name="error-at-the-logits",
            data={
                "token": subject.vocabulary[: len(prediction.error)],
                "p": prediction.probabilities,
                "p_minus_y": prediction.error,
            },
            alt=TEXT("alt error", error=three(float(prediction.error[prediction.target])), token=token),
        )
    explain.answer(TEXT("answer", error=TEXT["error"], entering=entering, arriving=arriving))
    explain.measure_it(draw_matrices, prediction)
    p = float(prediction.probabilities[prediction.target])
    explain.by_hand(st.markdown, TEXT("by hand", token=token, p=p, loss=prediction.loss, error=p - 1))


def lanes(prediction: Backward, labels: Sequence[str]) -> go.Figure:
    """Draws the gradient's norm for every state of the stream and every token, the logits on top; beside it
    that of all tokens together, in the colour of the part that wrote the state.
    """
    rows = [*prediction.states, TEXT["logits"]]
    top = np.zeros((1, prediction.norms.shape[1]))
    top[0, prediction.position] = prediction.error_norm
    values = np.vstack([prediction.norms, top])
    totals = np.append(prediction.totals, prediction.error_norm)
    parts = [*prediction.parts, "output"]
    with np.errstate(divide="ignore"):
        logs = np.where(values > 0, np.log10(values), np.nan)
    high = float(np.nanmax(logs)) if values.any() else 0.0  # a prediction that is certain, and right
    marks = np.arange(np.ceil(high - DECADES), np.floor(high) + 1)
    names = [plain(label) for label in labels]
    heat = go.Heatmap(
        z=logs.astype(np.float32),
        zmin=high - DECADES,
        zmax=high,
        colorscale=SEQUENTIAL,
        customdata=values.astype(np.float32),
        text=[names] * len(rows),
        hovertemplate=TEXT["hover lanes"],
        xgap=1,
        ygap=1,
        colorbar=go.scale_above(
            TEXT["lanes"], tickvals=marks, ticktext=[f"{10.0**mark:g}" for mark in marks]
        ),
    )
    bars = go.Bar(
        x=totals,
        y=np.arange(len(rows)),
        orientation="h",
        xaxis="x2",
        marker={"color": [colour(part) for part in parts]},
        text=[f"{total:.3g}" for total in totals] if len(rows) <= NUMBERED else None,
        textposition="outside",
        cliponaxis=False,
        customdata=rows,
        hovertemplate="%{customdata}: %{x:.4g}<extra></extra>",
    )
    tall = crowded(labels)
    chosen = go.rule(
        x=prediction.position, line={"color": colour("output"), "width": 1.5, "dash": "dot"}, layer="below"
    )
    below = {"anchor": "y", "title": {"text": TEXT["totals"]}, "showgrid": False} | _length(totals)

    def across(shares: Sequence[tuple[float, float]], most: int = MOST) -> dict[str, Any]:
        axis = token_axis(labels, upright=tall > 0, most=most, domain=list(shares[0]))
        return {"xaxis": axis, "xaxis2": below | {"domain": list(shares[1])}}

    return go.figure(
        [heat, bars],
        margin={"l": 8, "r": 16, "t": 8, "b": 44 + LETTER * tall},
        showlegend=False,
        bargap=0.25,
        shapes=[chosen],
        yaxis=_rows(rows) | {"range": [-0.52, len(rows) - 0.48], "title": {"text": TEXT["backwards"]}},
        annotations=_untouched(prediction, len(rows)),
        meta={"narrow": across(NARROW, most=NARROW_LABELS)},
        **across((LANES, BARS)),
    )


def _rows(names: Sequence[str]) -> dict[str, object]:
    """Returns an axis of the states: all, or of a deep model some, from the bottom, and the top one."""
    if len(names) <= NUMBERED:
        return rows_axis(names)
    step = 2 * math.ceil(len(names) / NUMBERED)  # two sublayers a block
    at = [*range(0, len(names) - step // 2, step), len(names) - 1]
    return go.ticks(at, [plain(names[i]) for i in at])


def _length(totals: np.ndarray) -> dict[str, object]:
    """Returns the scale of the bars: logarithmic where a straight one would hide most of them."""
    high = float(totals.max())
    positive = totals[totals > 0]
    if not len(positive) or high <= WIDE * float(positive.min()):
        return {"range": [0, 1.32 * high], "nticks": 4}
    ends = math.log10(float(positive.min())), math.log10(high)
    return {"type": "log", "range": [ends[0] - 0.3, ends[1] + 0.15], "dtick": 1, "exponentformat": "power"}


def _untouched(prediction: Backward, rows: int) -> list[dict[str, object]]:
    """The note on the tokens after the chosen position, where there is room for it."""
    first, count = prediction.position + 1, prediction.norms.shape[1]
    if count - first < ROOM * count:
        return []
    middle = (first + count - 1) / 2
    look = {"size": 13, "color": colour("quiet")}
    return [go.note(TEXT["untouched"], middle, (rows - 1) / 2, font=look, name="wide")]


def error_bars(tokens: Sequence[str], values: np.ndarray) -> go.Figure:
    """Draws p - y of some tokens, the one that came next on top: it is negative, all others are positive."""
    at = -np.arange(len(tokens))
    bars = go.Bar(
        x=values,
        y=at,
        orientation="h",
        marker={"color": [colour("output"), *[colour("quiet")] * (len(tokens) - 1)]},
        text=[signed_error(float(value)) for value in values],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x:+.4f}<extra></extra>",
    )
    heading = TEXT("error title", token=plain(short(tokens[0], MOST_LETTERS)))
    low, high = (min(0.0, float(values.min())), max(0.0, float(values.max())))
    room = (0.5 if max(map(len, tokens)) <= 2 else 0.9) * (high - low)  # names of words take its width
    return go.figure(
        [bars],
        margin={"l": 8, "r": 12, "t": 52, "b": 44},
        showlegend=False,
        xaxis=go.axis(TEXT["error"], zeroline=True, tickvals=[-1, 0, 1], range=[low - room, high + room]),
        yaxis=go.ticks(at, [plain(short(token, MOST_LETTERS)) for token in tokens], tickfont=MONO),
        annotations=[go.heading(heading, align="left")],
    )


def signed_error(value: float) -> str:
    """
    >>> signed_error(-0.9882), signed_error(0.0004)
    ('−0.988', '< 0.001')
    """
    return minus(f"{value:+.3f}") if abs(value) >= SMALL else f"< {SMALL}"


PART = View("pass", TEXT, draw, code=(backward, trainable_twin))
