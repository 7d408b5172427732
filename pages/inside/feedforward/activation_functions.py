"""The view "Activation functions": all side by side, and where the inputs of the model fall on its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.parts.feedforward import GatedFeedForward, gelu_tanh, relu2
from pages.inside.feedforward import without_the_network
from studies.costs.cards.table import card_of
from studies.feedforward import activation_functions
from studies.feedforward.activation_functions import Curve, Difference, Inputs, curve
from ui import content, explain, memo, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
REACHES = (2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
DOTS = 500
DRAWN, FORMS = ("output", "slope"), ("map", "slices")
WITHOUT = "no network"
SHADES = {"relu": "run1", "relu2": "run2", "gelu": "validation", "gelu_tanh": "run3", "silu": "training"}


def draw(subject: Subject) -> None:
    """Draws the functions, or their slopes, over the model's own inputs; two GELUs and gates are folded."""
    parts = subject.model.parts
    trained, functions = (
        activation_functions.activation_name(subject.config, parts),
        activation_functions.functions(subject.config, parts),
    )
    names = list(functions)
    left, right = st.columns([5, 2], gap="medium")
    with right:
        what = widgets.select(TEXT["show"], [*DRAWN, WITHOUT], "feedforward_drawn")
        if what == WITHOUT:
            with left:
                without_the_network.draw(subject)
            return
        chosen = widgets.select_several(
            TEXT["functions"],
            {n: functions[n][0] for n in names},
            "feedforward_functions",
            first=names,
            wrap=True,
        )
        reach = widgets.slide_over(TEXT["reach"], REACHES, 4.0, "feedforward_reach", written="{:g}".format)
        layers = ["all", *map(str, range(subject.config.n_layers))] if trained else ["all"]
        layer = widgets.select(
            TEXT["inputs"],
            layers,
            "feedforward_inputs",
            kind="list",
            hint=TEXT["inputs hint"],
            disabled=trained is None,
        )
    name = activation_functions.bent_input(subject.config, parts)
    inputs = _inputs(subject.key, subject.ids, layer, reach, subject.recording(), name) if trained else None
    wanted = widgets.only(chosen, names)
    every = _all_curves(reach, subject.config.ffn, parts.name, functions)
    with left:
        _curves([c for c in every if c.name in wanted], trained, inputs, slopes=what == "slope")
    explain.answer(_answer(subject, trained, inputs))
    explain.measure_it(_more, subject, inputs)


def _answer(subject: Subject, trained: str | None, inputs: Inputs | None) -> str:
    """Says where a model's inputs fall on its own function, of a gated network on its gate."""
    part = subject.model.parts.feedforward(subject.config)
    if inputs is None or trained is None:
        return TEXT["no function" if part.present else "no network"]
    activation = content.Filled(activation_functions.written(trained))
    gated = content.Filled(card_of(part).title)
    case = "answer gated" if part.gated else "answer"
    said = [TEXT(case, activation=activation, gated=gated, negative=inputs.negative)]
    if inputs.outside:
        said.append(TEXT("outside", outside=inputs.outside))
    return " ".join(said)


def _more(subject: Subject, inputs: Inputs | None) -> None:
    """How the inputs are spread, two GELUs, and a gate."""
    if inputs is not None:
        st.caption(TEXT("inputs spread", mean=inputs.mean, std=inputs.std))
    left, right = st.columns(2, gap="medium")
    with left:
        _two_gelus()
    with right:
        _gated(subject)


@memo.measured()
def _all_curves(
    reach: float, ffn: str, made_of: str, _functions: Mapping[str, activation_functions.Written]
) -> list[Curve]:
    """`ffn` and the parts' name stand for the functions in the key."""
    return [activation_functions.curve(name, -reach, reach, among=_functions) for name in _functions]


@memo.measured()
def _inputs(
    key: tuple[str, int], ids: tuple[int, ...], layer: str, reach: float, _recording: Any, name: str
) -> Inputs:
    values = _recording.stacked(name) if layer == "all" else _recording[f"blocks.{layer}.{name}"]
    return activation_functions.spread(values, -reach, reach)


def _curves(curves: list[Curve], trained: str | None, inputs: Inputs | None, *, slopes: bool) -> None:
    what = DRAWN[slopes]
    functions = ", ".join(c.written for c in curves) or TEXT["none"]
    table = (
        pd.DataFrame({"x": curves[0].x} | {c.name: c.slope if slopes else c.y for c in curves})
        if curves
        else None
    )
    plot(
        function_curves(curves, trained, inputs, slopes=slopes),
        key=f"feedforward_{what}",
        alt=TEXT("alt curves", what=TEXT[f"what {what}"], functions=functions),
        height=410,
        data=table,
        name=f"activation-{what}",
    )


def _two_gelus() -> None:
    st.subheader(TEXT["gelus"], anchor=False)
    worst = _difference()
    x, difference = worst.x[::10], worst.y[::10]
    plot(
        difference_line(x, difference),
        key="feedforward_difference",
        alt=TEXT("alt difference", worst=worst.worst, where=worst.where),
        height=360,
        data=pd.DataFrame({"x": x, "tanh_minus_exact": difference}),
        name="gelu-difference",
    )
    st.markdown(TEXT("differ by", points=len(worst.x), worst=worst.worst, where=worst.where))


@memo.measured()
def _difference() -> Difference:
    return activation_functions.worst_difference()


def _gated(subject: Subject) -> None:
    st.subheader(TEXT["gated"], anchor=False)
    trained, parts = subject.config.ffn, subject.model.parts
    gates = activation_functions.gates(parts)
    left, right = st.columns(2)
    with left:
        kind = widgets.select(TEXT["kind"], gates, "feedforward_gate")
    with right:
        form = widgets.select(TEXT["form"], FORMS, "feedforward_form")
    axis, surface = activation_functions.gated_surface(kind, parts=parts)
    table = pd.DataFrame(
        {"value": np.repeat(axis, len(axis)), "gate": np.tile(axis, len(axis)), "output": surface.ravel()}
    )
    with_dots = trained == kind and form != FORMS[1]
    if form == FORMS[1]:
        plot(
            gated_slices(axis, surface),
            key="feedforward_slices",
            alt=TEXT("alt slices", title=gates[kind]),
            height=330,
            data=table,
            name=kind,
        )
    else:
        dots = _pairs(subject.key, subject.ids, subject.recording()) if with_dots else None
        plot(
            gated_map(axis, surface, dots),
            key="feedforward_surface",
            alt=TEXT("alt map", title=gates[kind]),
            height=330,
            data=table,
            name=kind,
        )
    activation = content.Filled(activation_functions.written(parts.feedforwards[kind].act))
    said = [TEXT("gate product", activation=activation)]
    if with_dots:
        said.append(TEXT("dots", dots=DOTS))
    st.markdown(" ".join(said))


@memo.measured()
def _pairs(key: tuple[str, int], ids: tuple[int, ...], _recording: Any) -> tuple[np.ndarray, np.ndarray]:
    """(gates, values) of some neurons at some tokens, spread evenly over all there are: both (DOTS,)."""
    return activation_functions.some_pairs(
        _recording.stacked("ffn_gate"), _recording.stacked("ffn_pre"), DOTS
    )


# Figures ------------------------------------------------------------------------------------------


def function_curves(
    curves: Sequence[Curve], highlighted: str | None, inputs: Inputs | None, *, slopes: bool
) -> go.Figure:
    """Draws activation functions or their slopes; `highlighted` is drawn thicker. Behind them, the
    distribution of the model's own inputs.
    """
    behind = []
    if inputs is not None:
        middles = (inputs.edges[:-1] + inputs.edges[1:]) / 2
        behind = [
            go.Bar(
                x=middles,
                y=inputs.density,
                yaxis="y2",
                width=np.diff(inputs.edges),
                name=TEXT["own inputs"],
                marker={"color": colour("feedforward", 30)},
                hovertemplate=TEXT["hover inputs"],
            )
        ]
    lines = [
        go.line(
            c.x.astype(np.float32),
            (c.slope if slopes else c.y).astype(np.float32),
            SHADES.get(c.name, "feedforward"),
            c.written,
            width=4 if c.name == highlighted else 2,
            dash="dash" if c.name == "gelu_tanh" else "solid",
            hovertemplate=TEXT["hover"],
        )
        for c in curves
    ]
    high = max([float(np.max(c.slope if slopes else c.y)) for c in curves], default=1.0)
    reach = float(curves[0].x[-1]) if curves else 4.0
    top = min(high, 3.0 if slopes else 1.25 * reach)  # squared ReLU would press the others flat
    low = -0.22 if slopes else -0.45
    tallest = float(inputs.density.max()) if inputs is not None and inputs.density.size else 1.0
    return go.figure(
        [*behind, *lines],
        uirevision=f"functions-{reach}",
        margin={"l": 48, "r": 8, "t": 64, "b": 44},
        bargap=0,
        legend={"entrywidth": 96},
        xaxis={"title": {"text": TEXT["input"]}, "range": [-reach, reach]},
        yaxis=go.axis(
            TEXT["axis slope" if slopes else "axis output"],
            showgrid=True,
            range=[low, top * 1.05],
            overlaying="y2",
            tickmode="auto",
            nticks=6,
        ),
        yaxis2={
            "visible": False,
            "range": [low * 2.2 * max(tallest, 1e-9) / (top * 1.05), 2.2 * max(tallest, 1e-9)],
            "fixedrange": True,
        },
    )


def difference_line(x: np.ndarray, difference: np.ndarray) -> go.Figure:
    """Draws tanh GELU minus exact GELU: both (points,)."""
    x, difference = x.astype(np.float32), difference.astype(np.float32)
    return go.figure(
        [go.line(x, difference, "feedforward", "", TEXT["hover difference"])],
        margin={"l": 76, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": TEXT["input"]}},
        yaxis={"title": {"text": TEXT["difference"]}, "exponentformat": "power"},
    )


def gated_map(
    axis: np.ndarray, surface: np.ndarray, points: tuple[np.ndarray, np.ndarray] | None
) -> go.Figure:
    """Draws the output of a gated neuron: surface (value, gate) over axis (points,), with contours. `points`
    are (gates, values) of a model.
    """
    lines = dict(coloring="none", showlabels=True, labelfont={"size": 12}, start=-12, end=12, size=2)
    small = axis.astype(np.float32)
    bar = {"thickness": 12, "nticks": 7}
    heat = go.signed(surface, x=small, y=small, hovertemplate=TEXT["hover map"], colorbar=bar, zsmooth="fast")
    data = [
        heat,
        {
            "type": "contour",
            "x": small,
            "y": small,
            "z": surface,
            "contours": lines,
            "line": {"color": colour("quiet"), "width": 1},
            "hoverinfo": "skip",
            "showscale": False,
        },
    ]
    if points is not None:
        x, y = (p.astype(np.float32) for p in points)
        data.append(
            go.Scatter(
                mode="markers",
                x=x,
                y=y,
                marker={"color": colour("feedforward", 70), "size": 4},
                hoverinfo="skip",
            )
        )
    reach = [float(axis[0]), float(axis[-1])]
    return go.figure(
        data,
        margin={"l": 52, "r": 8, "t": 8, "b": 44},
        showlegend=False,
        xaxis={"title": {"text": TEXT["gate"]}, "range": reach},
        yaxis={"title": {"text": TEXT["value"]}, "range": reach},
    )


def gated_slices(axis: np.ndarray, surface: np.ndarray) -> go.Figure:
    """Draws the same as lines over the gate, one for each of five values."""
    rows = np.linspace(0, len(axis) - 1, 5).round().astype(int)
    shades = ("run0", "run1", "quiet", "run3", "training")
    lines = [
        go.line(
            axis.astype(np.float32),
            surface[row],
            shade,
            TEXT("value of", value=axis[row] + 0.0),
            TEXT["hover slices"],
        )
        for row, shade in zip(rows, shades, strict=True)
    ]
    return go.figure(
        lines,
        margin={"l": 52, "r": 8, "t": 34, "b": 44},
        xaxis={"title": {"text": TEXT["gate"]}},
        yaxis={"title": {"text": TEXT["axis output"]}},
    )


VIEW = View("functions", TEXT, draw, code=(relu2, gelu_tanh, GatedFeedForward, curve), figures_only=True)
