"""Activation functions side by side, and where the inputs of the subject fall on its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.feedforward import activation_functions
from engine.measure.feedforward.activation_functions import Curve, Difference, Inputs
from pages.inside.feedforward import figures_function as figures
from pages.inside.feedforward import words
from ui import explain, memo, widgets
from ui.model_bar import Subject
from ui.players.plot import plot

REACHES = (2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
DOTS = 500


def draw_functions(subject: Subject) -> None:
    """Draws the functions, or their slopes, over the model's own inputs; two GELUs and gates are folded."""
    parts = subject.model.parts
    trained, functions = (
        activation_functions.activation_name(subject.config, parts),
        activation_functions.functions(subject.config, parts),
    )
    names = list(functions)
    left, right = st.columns([3, 1], gap="medium")
    with right:
        what = widgets.select(words.SHOW, words.DRAWN, "feedforward_drawn")
        chosen = widgets.select_several(
            words.FUNCTIONS_SHOWN,
            {n: functions[n][0] for n in names},
            "feedforward_functions",
            first=names,
            wrap=True,
        )
        reach = widgets.slide_over(words.REACH, REACHES, 4.0, "feedforward_reach", written=lambda r: f"{r:g}")
        layers = ["all", *map(str, range(subject.config.n_layers))] if trained else ["all"]
        layer = widgets.select(
            words.INPUTS,
            layers,
            "feedforward_inputs",
            kind="list",
            hint=words.INPUTS_HINT,
            disabled=trained is None,
        )
    name = activation_functions.bent_input(subject.config, parts)
    inputs = _inputs(subject.key, subject.ids, layer, reach, subject.recording(), name) if trained else None
    wanted = widgets.only(chosen, names)
    every = _all_curves(reach, subject.config.ffn, parts.name, functions)
    with left:
        _curves([c for c in every if c.name in wanted], trained, inputs, slopes=what == "slope")
    part = parts.feedforward(subject.config)
    if inputs is None or trained is None:
        explain.answer(words.no_inputs(part.present))
    else:
        gated = part.card.title if part.gated else ""
        explain.answer(words.functions_answer(activation_functions.written(trained), gated, inputs))
    explain.measure_it(_more, subject, inputs)


def _more(subject: Subject, inputs: Inputs | None) -> None:
    """How the inputs are spread, two GELUs, and a gate."""
    if inputs is not None:
        st.caption(words.inputs_spread(inputs))
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
    what = words.DRAWN[slopes]
    table = (
        pd.DataFrame({"x": curves[0].x} | {c.name: c.slope if slopes else c.y for c in curves})
        if curves
        else None
    )
    plot(
        figures.function_curves(curves, trained, inputs, slopes=slopes),
        key=f"feedforward_{what}",
        alt=words.curves_alt(what, [c.written for c in curves]),
        height=410,
        data=table,
        name=f"activation-{what}",
    )


def _two_gelus() -> None:
    st.subheader(words.GELUS, anchor=False)
    worst = _difference()
    x, difference = worst.x[::10], worst.y[::10]
    plot(
        figures.difference_line(x, difference),
        key="feedforward_difference",
        alt=words.difference_alt(worst),
        height=360,
        data=pd.DataFrame({"x": x, "tanh_minus_exact": difference}),
        name="gelu-difference",
    )
    st.markdown(words.differ_by(worst))


@memo.measured()
def _difference() -> Difference:
    return activation_functions.worst_difference()


def _gated(subject: Subject) -> None:
    st.subheader(words.GATED, anchor=False)
    trained, parts = subject.config.ffn, subject.model.parts
    gates = activation_functions.gates(parts)
    left, right = st.columns(2)
    with left:
        kind = widgets.select(words.KIND, gates, "feedforward_gate")
    with right:
        form = widgets.select(words.FORM, words.FORMS, "feedforward_form")
    axis, surface = activation_functions.gated_surface(kind, parts=parts)
    table = pd.DataFrame(
        {"value": np.repeat(axis, len(axis)), "gate": np.tile(axis, len(axis)), "output": surface.ravel()}
    )
    with_dots = trained == kind and form != words.SLICES
    if form == words.SLICES:
        plot(
            figures.gated_slices(axis, surface),
            key="feedforward_slices",
            alt=words.SLICES_ALT.format(title=gates[kind]),
            height=330,
            data=table,
            name=kind,
        )
    else:
        dots = _pairs(subject.key, subject.ids, subject.recording()) if with_dots else None
        plot(
            figures.gated_map(axis, surface, dots),
            key="feedforward_surface",
            alt=words.GATED_ALT.format(title=gates[kind]),
            height=330,
            data=table,
            name=kind,
        )
    activation = activation_functions.written(parts.feedforwards[kind].act)
    st.markdown(words.gate_product(activation, DOTS if with_dots else 0))


@memo.measured()
def _pairs(key: tuple[str, int], ids: tuple[int, ...], _recording: Any) -> tuple[np.ndarray, np.ndarray]:
    """(gates, values) of some neurons at some tokens, spread evenly over all there are: both (DOTS,)."""
    return activation_functions.some_pairs(
        _recording.stacked("ffn_gate"), _recording.stacked("ffn_pre"), DOTS
    )
