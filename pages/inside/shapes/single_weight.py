"""The part "One weight": one matrix's gradient, and the loss as one of its weights is nudged."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.inside.shapes.gradient import HEIGHT, backpropagated, draw_matrices, three, titled
from studies.guesses import backward
from studies.shapes.backward import (
    AMOUNTS,
    EPSILON,
    Backward,
    MatrixGradient,
    Nudges,
    finite_difference,
    nudges,
)
from studies.shapes.optimiser_step import parameter_count
from ui import content, explain, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.labels import plain
from ui.figures.theme import colour
from ui.guess import Guess, ask
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
MATRIX, ENTRY, NUDGE, MAP = "shapes_matrix", "shapes_entry", "shapes_nudge", "shapes_gradient"
EXACT = 5_000_000  # parameters of a model that is copied into float64
TICKS = 8
CLOSE = 0.15  # of the measured change, by which a prediction may be off and still be called right


def draw(line: DeltaGenerator, subject: Subject) -> None:
    """Draws one matrix's gradient, and the loss as one of its weights is nudged."""
    if (prediction := backpropagated(subject, strip=False)) is None:
        return
    names = {key: titled(each.matrix) for key, each in prediction.gradients.items()}
    key = widgets.select(
        TEXT["matrix"], names, MATRIX, first=prediction.steepest(), kind="list", container=line, width=220
    )
    amount = widgets.slide_over(
        TEXT["nudge"], AMOUNTS, AMOUNTS[12], NUDGE, container=line, width=360, written=written
    )
    gradient = prediction.gradients[key]
    entry = _entry(gradient)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        plot(
            gradient_map(gradient, entry),
            key=MAP,
            height=HEIGHT + 40,
            name="gradient",
            data=pd.DataFrame(gradient.values, columns=gradient.columns).assign(row=gradient.rows),
            alt=TEXT(
                "alt map",
                matrix=titled(gradient.matrix),
                row=entry[0],
                column=entry[1],
                gradient=three(gradient.at(entry), signed=True),
            ),
        )
    with right:
        result = measured(
            ("nudges", subject.key, subject.ids, prediction.position, key, entry),
            partial(nudges, subject.model, prediction, key, entry),
            TEXT["nudging"],
        )
        if result is None:
            return
        at = result.index(amount)
        token = subject.vocabulary[prediction.target]
        plot(
            nudge_curve(result, at, token),
            key="shapes_nudged",
            height=HEIGHT + 40,
            name="nudged-weight",
            data={
                "nudge": result.amounts,
                "loss": result.losses,
                "predicted": result.loss + result.predicted,
            },
            alt=TEXT("alt curve", token=token, loss=three(float(result.losses[at])), nudge=written(amount)),
        )
    explain.answer(answer(result, at))
    ask("nudge", nudge, result, len(AMOUNTS) - 1, NUDGE)
    explain.measure_it(draw_matrices, prediction)
    explain.by_hand(_by_hand, subject, prediction, key, entry, result)


def _entry(gradient: MatrixGradient) -> tuple[int, int]:
    """The weight that is looked at: clicked, or named by the address, else that of the largest gradient."""
    rows, columns = gradient.shape
    picked = widgets.index_of(widgets.picked(MAP, "clicked"), rows * columns)
    index = picked if picked is not None else widgets.url_index(ENTRY, rows * columns)
    entry = gradient.entry if index is None else divmod(index, columns)
    if not gradient.has(entry):
        entry = gradient.entry
    widgets.put_index(ENTRY, None if entry == gradient.entry else entry[0] * columns + entry[1])
    return entry


def answer(nudges: Nudges, at: int) -> str:
    """Says what the gradient predicts of the nudge at place `at`, and what comes of it."""
    step, predicted, measured = (float(x[at]) for x in (nudges.amounts, nudges.predicted, nudges.measured))
    close = abs(predicted - measured) <= CLOSE * abs(measured)
    return TEXT(
        "not nudged" if not step else "predicted well" if close else "too large",
        gradient=three(nudges.gradient, signed=True),
        nudge=written(step),
        predicted=three(predicted, signed=True),
        measured=three(measured, signed=True),
    )


def written(amount: float) -> content.Filled:
    """Returns a nudge as it is written.

    >>> written(0.06), written(-0.2), written(0.0)
    ('+0.06', '−0.20', '0')
    """
    return content.Filled(minus(f"{amount:+.2f}") if amount else "0")


def nudge(nudges: Nudges, at: int, control: str) -> Guess | None:
    """Makes a guess about the largest nudge; a choice sets it, in the `control`."""
    truth = backward.nudge(nudges, at)
    if truth is None:
        return None
    n = truth.numbers
    predicted = three(n["predicted"], signed=True)
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", nudge=written(n["amount"]), predicted=predicted),
        TEXT("outcome", predicted=predicted, measured=three(n["measured"], signed=True)),
        {control: float(nudges.amounts[at])},
    )


def _by_hand(
    subject: Subject, prediction: Backward, key: str, entry: tuple[int, int], result: Nudges
) -> None:
    """Works the gradient out without calculus, where the model is small enough for float64."""
    st.markdown(first_order(result, entry))
    if parameter_count(subject.model) <= EXACT:
        slope = finite_difference(subject.model, prediction, key, entry)
        st.markdown(TEXT("two passes", epsilon=EPSILON, slope=slope, gradient=result.gradient))


def first_order(nudges: Nudges, entry: tuple[int, int]) -> str:
    return TEXT(
        "first order",
        row=entry[0],
        column=entry[1],
        weight=nudges.weight,
        gradient=nudges.gradient,
        loss=nudges.loss,
    )


def gradient_map(gradient: MatrixGradient, entry: tuple[int, int]) -> go.Figure:
    """Draws the rows and columns of a matrix's gradient with its largest entries, a box around `entry`. A
    click gives row * column count + column.
    """
    rows, columns = gradient.rows, gradient.columns
    index = rows[:, None] * gradient.shape[1] + columns[None, :]
    heat = go.signed(
        gradient.values,
        customdata=index.astype(np.int32),
        text=[[TEXT("place", row=r, column=c) for c in columns] for r in rows],
        hovertemplate="%{text}: %{z:.3g}<extra></extra>",
        xgap=1,
        ygap=1,
        colorbar=go.scale_above(TEXT["gradient"], 0.6),
    )
    down, across = (
        int(np.flatnonzero(indexes == each)[0]) for indexes, each in zip((rows, columns), entry, strict=True)
    )
    axes = []
    for indexes, title in ((columns, "column"), (rows, "row")):
        every = max(1, len(indexes) // TICKS)
        axes.append(
            go.ticks(
                np.arange(0, len(indexes), every),
                [str(each) for each in indexes[::every]],
                title=title,
                tickfont={"size": 12},
                tickangle=0,
            )
        )
    return go.figure(
        [heat],
        margin={"l": 52, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        shapes=[go.box(across, down, "output")],
        xaxis=axes[0] | {"range": [-0.52, len(columns) - 0.48]},
        yaxis=axes[1] | {"range": [len(rows) - 0.48, -0.52]},
    )


def nudge_curve(nudges: Nudges, at: int, token: str) -> go.Figure:
    """Draws the loss against what is added to the weight: measured, and along the gradient; a mark on each at
    place `at`.
    """
    tangent, hover = nudges.loss + nudges.predicted, "%{x:+.2f}: %{y:.4f} nats"
    lines = [
        go.line(nudges.amounts, tangent, "quiet", TEXT["predicted"], hover, dash="dash"),
        go.line(nudges.amounts, nudges.losses, "output", TEXT["measured"], hover, width=3),
    ]
    x = float(nudges.amounts[at])
    ends = float(tangent[at]), float(nudges.losses[at])
    gap = go.line([x, x], list(ends), "quiet", width=1.5, showlegend=False, hoverinfo="skip")
    marks = go.Scatter(
        x=[x, x],
        y=list(reversed(ends)),
        mode="markers",
        showlegend=False,
        marker={
            "size": [11, 19],
            "symbol": ["circle", "diamond-open"],
            "color": [colour("output"), colour("quiet")],
            "line": {"width": [0, 2.5]},
        },
        hovertemplate="%{y:.4f} nats<extra></extra>",
    )
    ticks = nudges.amounts[:: len(nudges.amounts) // 4]
    still = go.rule(x=0, line={"color": colour("quiet"), "width": 1, "dash": "dot"}, layer="below")
    return go.figure(
        [*lines, gap, marks],
        margin={"l": 62, "r": 12, "t": 34, "b": 44},
        shapes=[still],
        xaxis=go.ticks(
            ticks, [written(float(tick)) for tick in ticks], title=TEXT("added", weight=three(nudges.weight))
        ),
        yaxis=go.axis(TEXT("loss of", token=plain(token)), showgrid=True, zeroline=False, nticks=7),
    )


PART = View("weight", TEXT, draw, code=(nudges, finite_difference))
