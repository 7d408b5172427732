"""In-context learning on numbers: a layer trained here and now, and the gradient step that it becomes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.measure.circuits.in_context import (
    InContext,
    Layer,
    LearnedStep,
    Regression,
    continued,
    measure,
)
from pages.lab.after import figures_context as figures
from pages.lab.after import guesses_context as guesses
from pages.lab.after import words_context as words
from pages.lab.after.figures_context import REACH, Point
from ui import explain, guess, widgets
from ui.background_jobs import measured
from ui.players.plot import plot

TRAINED_ON = "context_examples"  # key
LAYERS: dict[Layer, str] = {
    "linear": "linear",
    "softmax": "softmax",
    "softmax4": "softmax, 4 heads",
}
SIZES = {"10": "10", "1": "1"}
EXAMPLES = (5, 10, 20, 40)
MOST_SEED = 999
POINTS, PLANE = "context_points", "context_plane"  # keys: the box of points, and their figure
FIRST = "-1.5 -1, -0.5 -0.5, 1 0.5, 1.5 1.5"
MOST_POINTS = 12
HEIGHT, BOX = 412, 84  # pixels: of a figure, and of the box above the plane
PAIR = re.compile(r"(-?\d(?:\.\d{1,2})?) (-?\d(?:\.\d{1,2})?)")


def draw_context(line: DeltaGenerator) -> None:
    """Trains the layers, while their matrix is drawn; then draws what they are, and how well they predict."""
    plan = _controls(line)
    guess.ask("step", guesses.step, plan, TRAINED_ON)
    trained = measured(
        ("in-context", plan),
        lambda: measure(plan),
        words.TRAINING,
        lambda looks: _learning(looks, plan),
        pausable=True,
    )
    if trained is None:
        return
    left, right = st.columns([1, 1], gap="medium")
    with left:
        says = _plane(trained) if plan.d == 1 else words.answer(trained)
        if plan.d > 1:
            _matrix(trained.looks[-1])
    with right:
        _errors(trained)
    explain.answer(says)
    explain.measure_it(_more, trained)
    explain.by_hand(lambda: st.markdown(words.by_hand(plan)))


def _controls(line: DeltaGenerator) -> Regression:
    with line:
        layer = widgets.select("Layer", LAYERS, "context_layer", hint=words.LAYER_HINT)
        size = widgets.select("Dimension of x", SIZES, "context_size", hint=words.SIZE_HINT)
        examples = widgets.select("Examples in training", EXAMPLES, TRAINED_ON, first=20)
        seed = widgets.whole("Seed", 0, MOST_SEED, 0, "context_seed", hint=words.SEED_HINT, width=90)
    return Regression(layer, int(size), examples, seed)


# Examples that somebody chooses -------------------------------------------------------------------


def _points() -> tuple[Point, ...]:
    """Returns the examples of the box, into which a click on the plane puts one, and a hand that moved or
    removed one all that are left.
    """
    moved = parsed(str(widgets.picked(PLANE, "moved") or ""))
    clicked = parsed(str(widgets.picked(PLANE, "clicked") or ""))
    if clicked:
        moved = added(parsed(str(widgets.held_or_linked(POINTS) or FIRST)) or parsed(FIRST), clicked[0])
    if moved:
        widgets.put(POINTS, written(moved))
    typed = st.text_input(
        words.POINTS, FIRST, key=POINTS, max_chars=160, help=words.POINTS_HINT, **widgets.KEPT
    )
    points = parsed(typed or "")
    if not points:
        st.caption(f":material/info: {words.NO_POINTS}")
    return points or parsed(FIRST)


def parsed(text: str) -> tuple[Point, ...]:
    """Returns the points of a text, "x y, x y"; nothing for any other, and for points beyond the plane.

    >>> parsed("-1.5 1, 0.5 0"), parsed("1 2 3"), parsed("9 9")
    (((-1.5, 1.0), (0.5, 0.0)), (), ())
    """
    trained = [PAIR.fullmatch(" ".join(part.split())) for part in text.split(",")]
    points = tuple((float(match[1]), float(match[2])) for match in trained if match)
    inside = all(abs(value) <= REACH for point in points for value in point)
    return points if all(trained) and inside and len(points) <= MOST_POINTS else ()


def written(points: Sequence[Point]) -> str:
    """Returns points as they stand in the box and in a link; the inverse of `parsed`."""
    return ", ".join(f"{x:g} {y:g}" for x, y in points)


def added(points: tuple[Point, ...], point: Point) -> tuple[Point, ...]:
    """Returns the points with another one, at most MOST_POINTS of them: the first goes.

    >>> added(((1.0, 2.0),), (0.0, 0.5))
    ((1.0, 2.0), (0.0, 0.5))
    """
    return (*points, point)[-MOST_POINTS:]


# Figures ------------------------------------------------------------------------------------------


def _learning(looks: Sequence[LearnedStep] | None, plan: Regression) -> None:
    """Draws the progress of the layers: the matrix so far, and the training loss."""
    if not looks:
        return
    left, right = st.columns([1, 1], gap="medium")
    with left:
        _matrix(looks[-1])
    with right:
        _losses(looks, plan)


def _matrix(look: LearnedStep) -> None:
    values = look.matrices[0]
    names = [f"query x{i + 1}" for i in range(len(values))]
    plot(
        figures.matrix(values),
        key="context_matrix",
        height=HEIGHT,
        name="learned-matrix",
        data=dict(zip(names, values.T, strict=True)),
        alt=words.matrix_alt(look),
    )


def _plane(trained: InContext) -> str:
    """Draws the examples that were chosen, and what is predicted; returns the answer."""
    points = _points()
    at = np.linspace(-REACH, REACH, 81)
    lines = continued(trained, points, at)
    names = [f"layer, seed {trained.plan.seed + i}" for i in range(trained.plan.seeds)]
    plot(
        figures.plane(points, at, lines, words.MOVE_HINT),
        key=PLANE,
        height=HEIGHT - BOX,
        name="in-context-line",
        data={"x": at} | dict(zip([*names, "one gradient step", "least squares"], lines, strict=True)),
        alt=words.plane_alt(points),
    )
    return words.answer_points(trained, points)


def _errors(trained: InContext) -> None:
    names = [f"layer, seed {trained.plan.seed + i}" for i in range(trained.plan.seeds)]
    rows = dict(zip(names, trained.layers, strict=True))
    plot(
        figures.errors(trained),
        key="context_errors",
        height=HEIGHT,
        name="in-context-errors",
        data={"examples": trained.counts}
        | rows
        | {"one gradient step": trained.gradient, "least squares": trained.least},
        alt=words.errors_alt(trained),
    )


def _losses(looks: Sequence[LearnedStep], plan: Regression) -> None:
    plot(
        figures.losses(looks, plan),
        key="context_losses",
        height=HEIGHT,
        name="in-context-losses",
        data=pd.DataFrame([look.losses for look in looks])
        .add_prefix("seed ")
        .assign(step=[k.step for k in looks]),
        alt=words.losses_alt(looks),
    )


def _more(trained: InContext) -> None:
    """The training, and each seed in numbers."""
    left, right = st.columns([1, 1], gap="medium")
    with left:
        _losses(trained.looks, trained.plan)
    with right:
        st.table(pd.DataFrame(words.rows(trained)).set_index("seed"), border="horizontal")
        st.markdown(words.measured(trained))
