"""Arrays -> figures of in-context learning: a learned matrix, examples on a plane, errors and losses. Pure
functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.measure.circuits.in_context import InContext, LearnedStep, Regression, mean_layer
from ui.figures import specs as go
from ui.figures.theme import DIVERGING, SEQUENTIAL, colour
from ui.text.numbers import minus

REACH, CELL = 2.0, 0.5  # of the plane on which points are chosen, and between its dots
MOVE = 0.1  # by which an example is moved
ADD = "click to add (%{x}, %{y})<extra></extra>"
HIGHEST = 1.3  # of the errors that are shown: with few examples a step is too long, and its error explodes
WRITTEN = 12  # rows of a matrix whose diagonal has its numbers written into it
LAYER, STEP, LEAST, NOTHING = "attention", "output", "feedforward", "quiet"
Point = tuple[float, float]


def matrix(values: np.ndarray) -> go.Figure:
    """Draws a learned matrix (d, d), rows an example's numbers, columns the query's."""
    d = len(values)
    names = [f"x{sub(i + 1)}" for i in range(d)]
    reach = max(0.5, float(np.abs(values).max()))  # at the start, noise stays pale
    diagonal = [
        [minus(f"{value:.2f}") if i == j and d <= WRITTEN else "" for j, value in enumerate(row)]
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
        hovertemplate="example's x%{y}, query's x%{x}: %{z:.4f}<extra></extra>",
        x=list(range(1, d + 1)),
        y=list(range(1, d + 1)),
    )
    still: dict[str, Any] = {"tickfont": {"size": 13}, "ticks": ""}
    indexes = list(range(1, d + 1))
    return go.figure(
        [heat],
        margin={"l": 56, "r": 8, "t": 50, "b": 8},
        showlegend=False,
        xaxis=go.ticks(indexes, names, title="the query's numbers", side="top", constrain="domain", **still),
        yaxis=go.ticks(
            indexes,
            names,
            title="an example's numbers",
            autorange="reversed",
            scaleanchor="x",
            constrain="domain",
            **still,
        ),
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
    x, plan = trained.counts, trained.plan
    traces = [
        _line(x, trained.least, "least squares", LEAST, width=2, dash="dot"),
        _line(x, trained.mean_layers, "the layer", LAYER, width=6),
        *(_line(x, each, "the layer, one seed", LAYER, width=1, legend=False) for each in trained.layers),
        _line(x, trained.gradient, "one gradient step", STEP, width=2.5, dash="dash"),
    ]
    guess = {"color": colour(NOTHING), "width": 1.2, "dash": "dot"}
    return go.figure(
        traces,
        uirevision="in-context-errors",
        margin={"l": 56, "r": 14, "t": 8, "b": 42},
        legend=LEGEND,
        xaxis=go.axis("examples in the prompt", range=[0, float(x[-1]) + 0.5], dtick=5),
        yaxis={"title": {"text": "squared error on the query"}, "range": [0, HIGHEST], "dtick": 0.25},
        shapes=[
            go.rule(y=1, line=guess, layer="below"),
            go.rule(x=plan.examples, line=guess, layer="below"),
        ],
        annotations=[
            _said("guessing 0", 1, 1, xref="paper", xanchor="right", yanchor="bottom"),
            _said(f" trained on {plan.examples}", plan.examples, HIGHEST, xanchor="left", yanchor="top")
            if plan.examples < x[-1]
            else _said(
                f"trained on {plan.examples} ", plan.examples, HIGHEST, xanchor="right", yanchor="top"
            ),
        ],
    )


def losses(looks: Sequence[LearnedStep], plan: Regression) -> go.Figure:
    """Draws the training loss of each seed by step, and the expected error of the best gradient step."""
    steps = np.array([look.step for look in looks])
    by_seed = np.stack([look.losses for look in looks], axis=-1)  # (seed, look)
    traces = [
        _line(steps, each, "each seed", LAYER, width=2, legend=i == 0) for i, each in enumerate(by_seed)
    ]
    quiet = {"color": colour(STEP), "width": 2, "dash": "dash"}
    return go.figure(
        traces,
        uirevision="in-context-losses",
        margin={"l": 56, "r": 14, "t": 8, "b": 42},
        legend=LEGEND,
        xaxis=go.axis("training step", range=[0, plan.steps], tickformat=",d"),
        yaxis={"title": {"text": "squared error in training"}, "range": [0, HIGHEST], "dtick": 0.25},
        shapes=[go.rule(y=plan.best_error, line=quiet, layer="below")],
        annotations=[
            _said(
                "best gradient step",
                1,
                plan.best_error,
                xref="paper",
                xanchor="right",
                yanchor="top",
            )
        ],
    )


def plane(points: Sequence[Point], at: np.ndarray, lines: np.ndarray, hint: str) -> go.Figure:
    """Draws examples on a plane, and over it what each predicts: `lines` (seed + 2, at), the layers, the
    gradient step, least squares. A click on a dot gives its place. Examples are moved (plot_points.js);
    `hint` says how.
    """
    moves = {"step": MOVE, "far": CELL, "reach": REACH, "name": "Example", "hint": hint}
    *layers, step, least = lines
    dots = np.arange(-REACH, REACH + CELL / 2, CELL)
    x, y = (grid.ravel() for grid in np.meshgrid(dots, dots))
    traces = [
        _marks(x, y, {"size": 5, "color": colour(NOTHING, 30)}) | {"hovertemplate": ADD},
        _line(at, least, "least squares", LEAST, width=2, dash="dot"),
        _line(at, mean_layer(lines), "the layer", LAYER, width=6),
        *(_line(at, each, "the layer, one seed", LAYER, width=1, legend=False) for each in layers),
        _line(at, step, "one gradient step", STEP, width=2.5, dash="dash"),
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


LEGEND = {"font": {"size": 13}, "traceorder": "reversed"}


def _line(
    x: np.ndarray,
    y: np.ndarray,
    name: str,
    part: str,
    *,
    width: float,
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
        hovertemplate=f"{name}: %{{y:.3f}}<extra></extra>",
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
