"""The view "√d_k": what the division by the square root is for, on random queries and keys. It needs no
model.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import scaling as measured
from engine.measure.scaling import (
    KEYS,
    QUERIES,
    WIDTHS,
    Scaled,
    scaling,
    weight_among_zeros,
    weight_of_a_zero,
)
from pages.inside.attention.figures import example_bars, scaling_curves
from pages.inside.attention.shared import KEPT
from ui import explain
from ui.players.plot import plot
from ui.subject import Subject

EXPONENTS = {"none": 0.0, "1/√d_k": 0.5, "1/d_k": 1.0, "own": None}


def scaling_view(subject: Subject) -> None:
    st.markdown(
        f"Random queries and keys, every entry normal with variance 1: {QUERIES} queries, each choosing among"
        f" {KEYS} keys. This is about the formula, not about the model above."
    )
    width, exponent, seed = _controls()
    scales = {"no scaling": 0.0, _words(exponent): exponent}
    curves = {name: _measured(WIDTHS, e, seed) for name, e in scales.items()}
    here = {name: _measured((width,), e, seed) for name, e in scales.items()}
    alt = (
        "Four panels over d_k: spread of the scores, entropy of the softmax and two sizes of its gradient,"
        " without and with the chosen scale."
    )
    plot(
        scaling_curves(curves, here, math.log(KEYS)),
        key="attention_scaling",
        alt=alt,
        height=540,
        data=_table(curves, here),
        name="scaling",
    )
    _numbers(here["no scaling"], here[_words(exponent)], width, exponent)
    examples = {name: c.example for name, c in here.items()}
    table = pd.DataFrame({"rank": np.arange(1, KEYS + 1)} | examples)
    alt = (
        f"The weights that one random query gives to its {KEYS} keys at d_k = {width}, largest first, without"
        " and with the scale."
    )
    plot(
        example_bars(examples),
        key="attention_scaling_example",
        alt=alt,
        height=280,
        data=table,
        name="one-query",
    )
    _worked(seed)
    explain.reading(
        see=(
            "Without scaling the scores spread like $\\sqrt{d_k}$, and the softmax soon picks one key. The"
            " mean slope falls from the start; the norm of the gradient first *rises*, while a few keys share"
            " it all, and then falls as well. With $1/\\sqrt{d_k}$ all stay level."
        ),
        why=(
            "A softmax that is certain before it has learned anything can hardly be taught: where one weight"
            " is 1, no change of a score changes anything."
        ),
        attempt=(
            "Set the scale to 1/d_k: now large heads start out perfectly even instead, and every key looks"
            " alike. The square root is what sits between."
        ),
    )
    explain.show_code(measured.scaling, measured.jacobian_norm, measured.mean_slope)


def _controls() -> tuple[int, float, int]:
    left, middle, right = st.columns([3, 3, 1.4], gap="medium", vertical_alignment="bottom")
    with left:
        width = st.slider("d_k, the width of a head", 1, 512, 32, key="attention_dk", **KEPT)
    with middle:
        name = st.segmented_control(
            "Scale", list(EXPONENTS), default="1/√d_k", key="attention_scale", required=True, **KEPT
        )
    with right:
        seed = st.number_input("Seed", 0, 9999, 0, key="attention_seed", **KEPT)
    exponent = EXPONENTS.get(name, 0.5)
    if exponent is None:
        exponent = st.slider(
            "Exponent a of the scale 1/d_kᵃ", 0.0, 1.5, 0.25, 0.05, key="attention_exponent", **KEPT
        )
    width = width if isinstance(width, int) and 1 <= width <= 512 else 32
    exponent = float(exponent) if 0 <= exponent <= 1.5 else 0.5
    return width, exponent, seed if isinstance(seed, int) and 0 <= seed <= 9999 else 0


def _words(exponent: float) -> str:
    return {0.0: "no scaling", 0.5: "scaled by 1/√d_k", 1.0: "scaled by 1/d_k"}.get(
        exponent, f"scaled by 1/d_k^{exponent:g}"
    )


@st.cache_resource(max_entries=256, show_spinner=False)
def _measured(widths: tuple[int, ...], exponent: float, seed: int) -> Scaled:
    return scaling(widths, exponent, seed)


@st.cache_resource(max_entries=256, show_spinner=False)
def _spread(width: int, seed: int) -> float:
    return measured.spread(width, seed)


def _table(*groups: dict[str, Scaled]) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "scale": name,
                "d_k": c.widths,
                "spread": c.spread,
                "entropy_nats": c.entropy,
                "jacobian_norm": c.jacobian,
                "mean_slope": c.slope,
            }
        )
        for curves in groups
        for name, c in curves.items()
    ]
    return (
        pd.concat(frames, ignore_index=True)
        .drop_duplicates(["scale", "d_k"])
        .sort_values(["scale", "d_k"], ignore_index=True)
    )


def _numbers(plain: Scaled, chosen: Scaled, width: int, exponent: float) -> None:
    rows = {
        "spread of the scores": (
            plain.spread,
            chosen.spread,
            f"√d_k = {math.sqrt(width):.3f}, scaled {width ** (0.5 - exponent):.3f}",
        ),
        "entropy of the softmax (nats)": (
            plain.entropy,
            chosen.entropy,
            f"at most ln {KEYS} = {math.log(KEYS):.3f}",
        ),
        "size of the gradient, ‖∂p/∂s‖": (plain.jacobian, chosen.jacobian, "0 would let nothing through"),
        "mean slope, |∂pᵢ/∂sⱼ|": (
            plain.slope,
            chosen.slope,
            f"at most 2(1 − 1/{KEYS})/{KEYS}² = {2 * (1 - 1 / KEYS) / KEYS**2:.6f}",
        ),
    }
    columns = {"no scaling": [f"{a[0]:.4g}" for a, _, _ in rows.values()]}
    columns[_words(exponent)] = [f"{b[0]:.4g}" for _, b, _ in rows.values()]
    columns["to hold it against"] = [c for _, _, c in rows.values()]
    st.markdown(f"**Measured at $d_k$ = {width}**")
    st.table(pd.DataFrame(columns, index=pd.Index(list(rows), name="")))


def _worked(seed: int) -> None:
    st.markdown("### Worked numbers")
    found = {width: _spread(width, seed) for width in (32, 128)}
    columns = st.columns(3)
    for column, width in zip(columns, found, strict=False):
        with column:
            formula = f"measured on a million pairs; in theory $\\sqrt{{{width}}} = {math.sqrt(width):.2f}$"
            explain.worked(f"Spread at d_k = {width}", f"{found[width]:.2f}", formula)
    with columns[2]:
        zeros = st.number_input("Zeros beside it", 1, 100_000, 99, key="attention_zeros", **KEPT)
        zeros = zeros if isinstance(zeros, int) and 1 <= zeros <= 100_000 else 99
        value = weight_among_zeros(14, zeros)
        explain.worked(
            f"A score of 14 among {zeros} zeros",
            f"{value:.5f}",
            f"$e^{{14}} / (e^{{14}} + {zeros})$, $e^{{14}} = {math.exp(14):.0f}$",
        )
    small = weight_among_zeros(14 / math.sqrt(128), zeros)
    st.caption(
        f"Each of the zeros gets 1 / (e¹⁴ + {zeros}) = {weight_of_a_zero(14, zeros):.1e}; a text that says"
        f" 0.00003 is mistaken. Divided by √128, the same score is {14 / math.sqrt(128):.2f} and takes"
        f" {small:.4f} of the weight among {zeros} zeros."
    )
