"""Activation functions side by side, and where the inputs of the subject fall on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import activations
from engine.measure.activations import ACTIVATIONS, BENDS, Curve, Inputs
from engine.parts.feedforward import GatedFeedForward, gelu_tanh, relu2
from pages.inside.feedforward import figures
from ui import explain
from ui.players.plot import plot
from ui.subject import Subject

REACHES = (2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
GATES = {"swiglu": "SwiGLU", "geglu": "GEGLU"}
DOTS = 500


def functions_view(subject: Subject) -> None:
    own = BENDS.get(subject.config.ffn)
    left, middle, right = st.columns([5, 2, 2], vertical_alignment="bottom", gap="medium")
    with left:
        names = list(ACTIVATIONS)
        chosen = st.pills(
            "Functions",
            names,
            default=names,
            selection_mode="multi",
            key="feedforward_functions",
            bind="query-params",
            format_func=lambda n: ACTIVATIONS[n][0],
        )
    with middle:
        reach = st.select_slider(
            "Inputs from −x to x",
            REACHES,
            4.0,
            key="feedforward_reach",
            bind="query-params",
            format_func=lambda r: f"{r:g}",
        )
    reach = reach if reach in REACHES else 4.0
    with right:
        layers = ["all", *map(str, range(subject.config.n_layers))] if own else ["all"]
        if st.session_state.get("feedforward_inputs", "all") not in layers:
            st.session_state["feedforward_inputs"] = "all"
        hint = "Of the model in the bar, on this text: the green area."
        layer = st.selectbox(
            "Inputs of layer",
            layers,
            key="feedforward_inputs",
            bind="query-params",
            disabled=own is None,
            help=hint,
        )
    inputs = (
        _inputs(
            subject.key,
            subject.ids,
            layer if layer in layers else "all",
            reach,
            subject.recording(),
            subject.config.ffn,
        )
        if own
        else None
    )
    _curves([c for c in _all_curves(reach) if c.name in (chosen or [])], own, inputs, subject)
    left, right = st.columns(2, gap="medium")
    with left:
        _two_gelus()
    with right:
        _gated(subject)
    explain.reading(
        see=(
            "Each line is what a function makes of its input; beside it the slope, which is what a gradient"
            " is multiplied by on its way back. The green area is where the inputs of the model in the bar"
            " fall on this text."
        ),
        why=(
            "Without a bend, two matrices in a row would be one. ReLU is 0, and so is its slope, left of"
            " zero: a neuron that only ever gets such inputs learns nothing. The smooth ones let a little"
            " through. A gate goes further: one half of the network decides how much of the other passes."
        ),
        attempt=(
            "Compare a trained model with an untrained one: how far from zero do its inputs spread? "
            "Then show GELU and its tanh approximation alone, and look for the difference."
        ),
    )
    explain.show_code(relu2, gelu_tanh, GatedFeedForward, activations.curve)


@st.cache_resource(max_entries=len(REACHES), show_spinner=False)
def _all_curves(reach: float) -> list[Curve]:
    return [activations.curve(name, -reach, reach) for name in ACTIVATIONS]


@st.cache_resource(max_entries=64, show_spinner=False)
def _inputs(
    key: tuple[str, int], ids: tuple[int, ...], layer: str, reach: float, _recording: Any, ffn: str
) -> Inputs:
    name = activations.bent_input(ffn)
    values = _recording.stacked(name) if layer == "all" else _recording[f"blocks.{layer}.{name}"]
    return activations.spread(values, -reach, reach)


def _curves(curves: list[Curve], own: str | None, inputs: Inputs | None, subject: Subject) -> None:
    left, right = st.columns(2, gap="medium")
    names = ", ".join(ACTIVATIONS[c.name][0] for c in curves) or "no function"
    for column, slopes, what in ((left, False, "Output"), (right, True, "Slope")):
        with column:
            st.caption(f"**{what}**" + (", by automatic differentiation" if slopes else ""))
            table = (
                pd.DataFrame({"x": curves[0].x} | {c.name: c.slope if slopes else c.y for c in curves})
                if curves
                else None
            )
            figure = figures.function_curves(curves, own, inputs, slopes=slopes)
            plot(
                figure,
                key=f"feedforward_{what.lower()}",
                alt=f"{what} of {names} over the input.",
                height=410,
                data=table,
                name=f"activation-{what.lower()}",
            )
    if inputs is None:
        st.info("This model has no feed-forward networks, so no inputs of its own are drawn.")
        return
    through = f"{ACTIVATIONS[str(own)][0]}" + (
        ", on the gate of " + GATES[subject.config.ffn] if subject.config.ffn in GATES else ""
    )
    outside = f" {inputs.outside:.1%} of them lie outside the picture." if inputs.outside else ""
    explain.takeaway(
        f"This model's own function is **{through}**. On this text **{inputs.negative:.0%}** of its inputs"
        f" are below zero; their mean is {inputs.mean:.2f}, their standard deviation"
        f" {inputs.std:.2f}.{outside}"
    )


def _two_gelus() -> None:
    st.subheader("GELU, exact and by tanh", anchor=False)
    x, difference = _difference()
    worst = int(np.abs(difference).argmax())
    table = pd.DataFrame({"x": x[::10], "tanh_minus_exact": difference[::10]})
    alt = f"Difference of the two; its largest size is {abs(difference[worst]):.1e}, at {x[worst]:.2f}."
    plot(
        figures.difference_line(x[::10], difference[::10]),
        key="feedforward_difference",
        alt=alt,
        height=360,
        data=table,
        name="gelu-difference",
    )
    st.markdown(
        "Exact: $x\\,\\Phi(x)$. GPT-2's: $\\tfrac x2\\,(1+\\tanh(\\sqrt{2/\\pi}\\,(x+0.044715\\,x^3)))$."
        f" Measured at {len(x):,} points between −6 and 6 they differ by at most"
        f" **{abs(difference[worst]):.6f}** (at x = ±{abs(x[worst]):.2f})."
    )


@st.cache_resource(show_spinner=False)
def _difference() -> tuple[np.ndarray, np.ndarray]:
    return activations.gelu_difference()


def _gated(subject: Subject) -> None:
    st.subheader("With a gate", anchor=False)
    own = subject.config.ffn
    left, right = st.columns(2)
    with left:
        kind = st.segmented_control(
            "Kind",
            list(GATES),
            default="swiglu",
            required=True,
            key="feedforward_gate",
            bind="query-params",
            format_func=GATES.__getitem__,
        )
    with right:
        form = st.segmented_control(
            "Drawn as",
            ["map", "slices"],
            default="map",
            required=True,
            key="feedforward_form",
            bind="query-params",
        )
    kind = kind if kind in GATES else "swiglu"
    axis, surface = activations.gated_surface(kind)
    table = pd.DataFrame(
        {"value": np.repeat(axis, len(axis)), "gate": np.tile(axis, len(axis)), "output": surface.ravel()}
    )
    if form == "slices":
        alt = f"{GATES[kind]} over the gate, for five values."
        plot(
            figures.gated_slices(axis, surface),
            key="feedforward_slices",
            alt=alt,
            height=330,
            data=table,
            name=kind,
        )
    else:
        dots = _pairs(subject.key, subject.ids, subject.recording()) if own == kind else None
        alt = (
            f"Heatmap of {GATES[kind]} over gate and value: near zero where the gate is below zero, the"
            " product of both where it is far above."
        )
        plot(
            figures.gated_map(axis, surface, dots),
            key="feedforward_surface",
            alt=alt,
            height=330,
            data=table,
            name=kind,
        )
    bend = "SiLU" if kind == "swiglu" else "GELU"
    shown = (
        f" The dots are {DOTS} pairs of this model on this text; some lie outside."
        if own == kind and form != "slices"
        else ""
    )
    product = f"$\\text{{{bend}}}(\\text{{gate}})\\cdot\\text{{value}}$"
    st.markdown(
        f"{product} (Shazeer 2020): the sign comes from the value, and the gate decides whether it"
        f" passes.{shown}"
    )


@st.cache_resource(max_entries=16, show_spinner=False)
def _pairs(key: tuple[str, int], ids: tuple[int, ...], _recording: Any) -> tuple[np.ndarray, np.ndarray]:
    """(gates, values) of some neurons at some tokens, spread evenly over all there are: both (DOTS,)."""
    gates, values = _recording.stacked("ffn_gate").ravel(), _recording.stacked("ffn_pre").ravel()
    some = np.random.default_rng(0).choice(gates.size, min(DOTS, gates.size), replace=False)
    return gates[some], values[some]
