"""The view "In-context learning": a layer trained here and now on numbers, and the gradient step that it
becomes; or a language model that is shown examples (few_shot.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.lab.after import few_shot
from studies.circuits.in_context import (
    HEADS,
    TASKS,
    AttentionLayer,
    InContext,
    LearnedStep,
    Regression,
    continued,
    gradient_step,
    learn,
    least_squares,
    mean_layer,
    measure,
    slopes,
)
from studies.guesses import after
from ui import content, explain, guess, widgets
from ui.background_jobs import measured
from ui.figures import specs as go
from ui.figures.theme import DIVERGING, SEQUENTIAL, colour
from ui.guess import Guess
from ui.page_frame import Parts, View
from ui.players.plot import plot
from ui.text.numbers import minus

TEXT = content.beside(__file__)
TRAINED_ON = "context_examples"  # key
SIZES = ("10", "1")
EXAMPLES = (5, 10, 20, 40)
MOST_SEED = 999
POINTS, PLANE = "context_points", "context_plane"  # keys: the box of points, and their figure
FIRST = "-1.5 -1, -0.5 -0.5, 1 0.5, 1.5 1.5"
MOST_POINTS = 12
HEIGHT, BOX = 412, 84  # pixels: of a figure, and of the box above the plane
PAIR = re.compile(r"(-?\d(?:\.\d{1,2})?) (-?\d(?:\.\d{1,2})?)")
REACH, CELL = 2.0, 0.5  # of the plane on which points are chosen, and between its dots
MOVE = 0.1  # by which an example is moved
HIGHEST = 1.3  # of the errors that are shown: with few examples a step is too long, and its error explodes
WRITTEN = 12  # rows of a matrix whose diagonal has its numbers written into it
LAYER, STEP, LEAST, NOTHING = "attention", "output", "feedforward", "quiet"
LEGEND = {"font": {"size": 13}, "traceorder": "reversed"}
Point = tuple[float, float]


def draw(line: DeltaGenerator) -> None:
    """Trains the layers, while their matrix is drawn; then draws what they are, and how well they predict."""
    plan = _controls(line)
    guess.ask("step", _guess, plan)
    trained = measured(
        ("in-context", plan),
        partial(measure, plan),
        TEXT["training"],
        lambda looks: _learning(looks, plan),
        pausable=True,
    )
    if trained is None:
        return
    left, right = st.columns([1, 1], gap="medium")
    with left:
        says = _plane(trained) if plan.d == 1 else answer(trained)
        if plan.d > 1:
            _matrix(trained.looks[-1])
    with right:
        _errors(trained)
    explain.answer(says)
    explain.measure_it(_more, trained)
    explain.by_hand(
        st.markdown,
        TEXT(
            "by hand",
            n=plan.examples,
            total=plan.examples + plan.d + 1,
            rate=plan.best_rate,
            error=plan.best_error,
        ),
    )


def _controls(line: DeltaGenerator) -> Regression:
    with line:
        layers = {layer: TEXT(f"layer {layer}") for layer in HEADS}
        layer = widgets.select(TEXT["layer"], layers, "context_layer", hint=TEXT["layer hint"])
        size = widgets.select(
            TEXT["size"], {size: size for size in SIZES}, "context_size", hint=TEXT["size hint"]
        )
        examples = widgets.select(TEXT["examples"], EXAMPLES, TRAINED_ON, first=20)
        hint = TEXT["seed hint"]
        seed = widgets.whole(TEXT["seed"], 0, MOST_SEED, 0, "context_seed", hint=hint, width=90)
    return Regression(layer, int(size), examples, seed)


def answer(trained: InContext) -> str:
    """Says what the layers do, for several input numbers."""
    better = trained.error < trained.gradient_error
    case = _learned(trained) or ("better" if better else "worse")
    return TEXT(
        f"matrix {case}",
        rate=trained.rate,
        best=trained.plan.best_rate,
        seeds=trained.plan.seeds,
        error=trained.error,
        gradient=trained.gradient_error,
    )


def answer_points(trained: InContext, points: Sequence[Point]) -> str:
    """Says what the layers answer after some points."""
    layer, step, least = slopes(trained, points)
    return TEXT(f"line {_learned(trained) or 'softmax'}", layer=layer, step=step, least=least)


def _learned(trained: InContext) -> str:
    """Returns the name of what linear layers have learned; empty for softmax."""
    if trained.plan.layer != "linear":
        return ""
    return "a step" if trained.is_gradient_step else "not yet"


def _guess(plan: Regression) -> Guess | None:
    """Makes a guess about a training with more examples, or fewer where there are many."""
    other = replace(plan, examples=5 if plan.examples >= 40 else 40)
    truth = after.step_size(plan, other)
    if truth is None:
        return None
    examples = {"examples": plan.examples, "other": other.examples}
    return Guess.of(
        TEXT,
        truth,
        TEXT("guess", **examples),
        TEXT("outcome", **examples, **truth.numbers),
        {TRAINED_ON: other.examples},
    )


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
        TEXT["points"], FIRST, key=POINTS, max_chars=160, help=TEXT["points hint"], **widgets.KEPT
    )
    points = parsed(typed or "")
    if not points:
        st.caption(TEXT["no points"])
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
    names = [TEXT("query number", number=i + 1) for i in range(len(values))]
    plot(
        matrix(values),
        key="context_matrix",
        height=HEIGHT,
        name="learned-matrix",
        data=dict(zip(names, values.T, strict=True)),
        alt=TEXT("alt matrix", step=look.step, rate=look.diagonal),
    )


def _plane(trained: InContext) -> str:
    """Draws the examples that were chosen, and what is predicted; returns the answer."""
    points = _points()
    at = np.linspace(-REACH, REACH, 81)
    lines = continued(trained, points, at)
    plot(
        plane(points, at, lines),
        key=PLANE,
        height=HEIGHT - BOX,
        name="in-context-line",
        data={"x": at} | _columns(trained.plan, lines),
        alt=TEXT("alt plane", points=len(points)),
    )
    return answer_points(trained, points)


def _errors(trained: InContext) -> None:
    lines = [*trained.layers, trained.gradient, trained.least]
    plot(
        errors(trained),
        key="context_errors",
        height=HEIGHT,
        name="in-context-errors",
        data={"examples": trained.counts} | _columns(trained.plan, lines),
        alt=TEXT(
            "alt errors",
            examples=trained.plan.examples,
            error=trained.error,
            gradient=trained.gradient_error,
        ),
    )


def _columns(plan: Regression, lines: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
    """Returns `lines` (at,) by name: the layers, the gradient step, least squares."""
    names = [TEXT("one seed", seed=plan.seed + i) for i in range(plan.seeds)]
    return dict(zip([*names, TEXT["gradient step"], TEXT["least squares"]], lines, strict=True))


def _losses(looks: Sequence[LearnedStep], plan: Regression) -> None:
    plot(
        losses(looks, plan),
        key="context_losses",
        height=HEIGHT,
        name="in-context-losses",
        data=pd.DataFrame([look.losses for look in looks])
        .add_prefix("seed ")
        .assign(step=[look.step for look in looks]),
        alt=TEXT("alt losses", seeds=len(looks[-1].losses), loss=looks[-1].loss),
    )


def _more(trained: InContext) -> None:
    """The training, and each seed in numbers."""
    plan = trained.plan
    at = trained.counts.tolist().index(plan.examples)
    rows = {
        TEXT["seed column"]: [str(plan.seed + i) for i in range(plan.seeds)],
        TEXT["diagonal column"]: [minus(f"{rate:.3f}") for rate in trained.rates],
        TEXT["error column"]: [f"{each[at]:.3f}" for each in trained.layers],
        TEXT["apart column"]: [f"{share:.1%}" for share in trained.apart],
    }
    left, right = st.columns([1, 1], gap="medium")
    with left:
        _losses(trained.looks, plan)
    with right:
        st.table(pd.DataFrame(rows).set_index(TEXT["seed column"]), border="horizontal")
        st.markdown(
            TEXT(
                "measured",
                tasks=TASKS,
                examples=plan.examples,
                rate=plan.best_rate,
                gradient=trained.gradient_error,
                expected=plan.best_error,
                beside=trained.beside,
            )
        )


def matrix(values: np.ndarray) -> go.Figure:
    """Draws a learned matrix (d, d), rows an example's numbers, columns the query's."""
    indexes = list(range(1, len(values) + 1))
    names = [TEXT("index", number=sub(i)) for i in indexes]
    reach = max(0.5, float(np.abs(values).max()))  # at the start, noise stays pale
    diagonal = [
        [minus(f"{value:.2f}") if i == j and len(row) <= WRITTEN else "" for j, value in enumerate(row)]
        for i, row in enumerate(values)
    ]
    heat = go.Heatmap(
        z=values.astype(np.float32),
        text=diagonal,
        texttemplate="%{text}",
        textfont={"size": 12, "color": SEQUENTIAL[0][1]},
        colorscale=DIVERGING,
        zmin=-reach,
        zmid=0,
        zmax=reach,
        xgap=1,
        ygap=1,
        showscale=False,  # the diagonal has its numbers written into it
        hovertemplate=TEXT["matrix hover"],
        x=indexes,
        y=indexes,
    )
    still: dict[str, Any] = {"tickfont": {"size": 13}, "ticks": "", "constrain": "domain"}
    down = {"autorange": "reversed", "scaleanchor": "x"} | still
    return go.figure(
        [heat],
        margin={"l": 56, "r": 8, "t": 50, "b": 8},
        showlegend=False,
        xaxis=go.ticks(indexes, names, title=TEXT["query axis"], side="top", **still),
        yaxis=go.ticks(indexes, names, title=TEXT["example axis"], **down),
    )


def sub(number: int) -> str:
    """Returns a number as an index below the line.

    >>> sub(10)
    '₁₀'
    """
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def errors(trained: InContext) -> go.Figure:
    """Draws the error against the number of examples: each seed's layer, one gradient step, least squares,
    and guessing.
    """
    counts, plan = trained.counts, trained.plan
    level = {"color": colour(NOTHING), "width": 1.2, "dash": "dot"}
    said = TEXT("trained on", examples=plan.examples)
    inside = plan.examples < counts[-1]  # else the note stands on the line's other side
    return go.figure(
        _predictions(counts, trained.layers, trained.mean_layers, trained.gradient, trained.least),
        uirevision="in-context-errors",
        margin={"l": 56, "r": 14, "t": 8, "b": 42},
        legend=LEGEND,
        xaxis=go.axis(TEXT["counts axis"], range=[0, float(counts[-1]) + 0.5], dtick=5),
        yaxis={"title": {"text": TEXT["errors axis"]}, "range": [0, HIGHEST], "dtick": 0.25},
        shapes=[
            go.rule(y=1, line=level, layer="below"),
            go.rule(x=plan.examples, line=level, layer="below"),
        ],
        annotations=[
            _said(TEXT["guessing"], 1, 1, xref="paper", xanchor="right", yanchor="bottom"),
            _said(
                f" {said}" if inside else f"{said} ",
                plan.examples,
                HIGHEST,
                xanchor="left" if inside else "right",
                yanchor="top",
            ),
        ],
    )


def losses(looks: Sequence[LearnedStep], plan: Regression) -> go.Figure:
    """Draws the training loss of each seed by step, and the expected error of the best gradient step."""
    steps = np.array([look.step for look in looks])
    by_seed = np.stack([look.losses for look in looks], axis=-1)  # (seed, look)
    traces = [
        _line(steps, each, TEXT["each seed"], LAYER, 2, legend=i == 0) for i, each in enumerate(by_seed)
    ]
    quiet = {"color": colour(STEP), "width": 2, "dash": "dash"}
    best = plan.best_error
    return go.figure(
        traces,
        uirevision="in-context-losses",
        margin={"l": 56, "r": 14, "t": 8, "b": 42},
        legend=LEGEND,
        xaxis=go.axis(TEXT["steps axis"], range=[0, plan.steps], tickformat=",d"),
        yaxis={"title": {"text": TEXT["losses axis"]}, "range": [0, HIGHEST], "dtick": 0.25},
        shapes=[go.rule(y=best, line=quiet, layer="below")],
        annotations=[_said(TEXT["best step"], 1, best, xref="paper", xanchor="right", yanchor="top")],
    )


def plane(points: Sequence[Point], at: np.ndarray, lines: np.ndarray) -> go.Figure:
    """Draws examples on a plane, and over it what each predicts: `lines` (seed + 2, at), the layers, the
    gradient step, least squares. A click on a dot gives its place. Examples are moved (plot_points.js).
    """
    moves = {"step": MOVE, "far": CELL, "reach": REACH, "name": TEXT["example"], "hint": TEXT["move hint"]}
    *layers, step, least = lines
    dots = np.arange(-REACH, REACH + CELL / 2, CELL)
    x, y = (grid.ravel() for grid in np.meshgrid(dots, dots))
    traces = [
        _marks(x, y, {"size": 5, "color": colour(NOTHING, 30)}) | {"hovertemplate": TEXT["add"]},
        *_predictions(at, layers, mean_layer(lines), step, least),
        _marks(
            np.array([p[0] for p in points]),
            np.array([p[1] for p in points]),
            {"size": 13, "color": colour("residual"), "line": {"width": 2, "color": colour(NOTHING, 30)}},
        )
        | {"hoverinfo": "skip", "meta": {"moves": moves}},
    ]
    reach = [-REACH - 0.25, REACH + 0.25]
    axis: Mapping[str, Any] = {"range": reach, "dtick": 1, "zeroline": True, "fixedrange": True}
    return go.figure(
        traces,
        uirevision="in-context-plane",
        margin={"l": 48, "r": 8, "t": 8, "b": 42},
        legend=LEGEND,
        dragmode=False,
        xaxis=go.axis("x", **axis),
        yaxis=go.axis("y", **axis),
    )


def _predictions(
    x: np.ndarray, layers: Iterable[np.ndarray], mean: np.ndarray, step: np.ndarray, least: np.ndarray
) -> list[go.Trace]:
    """Returns lines (x,) of least squares, of the layers and their `mean`, and of the gradient step."""
    return [
        _line(x, least, TEXT["least squares"], LEAST, 2, dash="dot"),
        _line(x, mean, TEXT["the layer"], LAYER, 6),
        *(_line(x, each, TEXT["each layer"], LAYER, 1, legend=False) for each in layers),
        _line(x, step, TEXT["gradient step"], STEP, 2.5, dash="dash"),
    ]


def _line(
    x: np.ndarray,
    y: np.ndarray,
    name: str,
    part: str,
    width: float,
    *,
    dash: str = "solid",
    legend: bool = True,
) -> go.Trace:
    return go.Scatter(
        x=np.asarray(x, np.float32),
        y=np.asarray(y, np.float32),
        name=name,
        mode="lines",
        line={"color": colour(part, 45 if width > 4 else 100), "width": width, "dash": dash},
        showlegend=legend,
        hovertemplate=TEXT("hover", name=name),
    )


def _marks(x: np.ndarray, y: np.ndarray, marker: dict[str, Any]) -> go.Trace:
    """Points that say where they are when they are clicked."""
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker=marker,
        customdata=[f"{a:g} {b:g}" for a, b in zip(x.tolist(), y.tolist(), strict=True)],
        showlegend=False,
    )


def _said(text: str, x: float, y: float, **rest: Any) -> dict[str, Any]:
    return go.note(text, x, y, font={"color": colour(NOTHING), "size": 13}, **rest)


NEW_LAYER = View(
    "layer", TEXT, draw, (AttentionLayer, learn, gradient_step, least_squares), name=TEXT["new layer"]
)
VIEW = View(
    "context",
    TEXT,
    needs_model=False,
    parts=Parts(
        "context_learner", (NEW_LAYER, few_shot.PART), label=TEXT["learner"], hint=TEXT["learner hint"]
    ),
)
