"""The view "√d_k": what the division by the square root is for, on random queries and keys. It needs no
model.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.attention import scaling as measured
from engine.measure.attention.scaling import (
    CHOICES,
    KEYS,
    QUERIES,
    WIDTHS,
    SampleQuery,
    ScoreScaling,
    among_zeros,
    crossing,
    sample_query,
    scaling,
    theory,
)
from pages.inside.attention import guesses
from pages.inside.attention import words_scores as words
from pages.inside.attention.figures_scaling import query_bars, scaling_curves
from ui import explain, widgets
from ui.guess import ask
from ui.players.plot import plot
from ui.text.numbers import scientific

EXPONENTS = {"none": 0.0, "1/√d_k": 0.5, "1/d_k": 1.0, "own": None}
SCALES = {name: name for name in EXPONENTS} | {"own": "custom"}
WIDTH = "attention_dk"
SCORE = 14  # that is worked out: about what a spread of √128 brings by itself


def draw_scaling() -> None:
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        _round()
        width = widgets.slide_over("Head width d_k", WIDTHS, 64, WIDTH)
        seed = widgets.whole("Seed", 0, 9999, 0, "attention_seed", hint=words.SEED_HINT)
        st.caption(words.SCALING_SETTING)
    query = sample_query(width, seed)
    with figure:
        for column, divided in zip(st.columns(2), (False, True), strict=True):
            with column:
                _bars(query, divided)
    explain.answer(words.scaled(query))
    ask("width", guesses.width, query, seed)
    explain.measure_it(_curves, width, seed)
    explain.by_hand(_worked, seed)


def _round() -> None:
    """A link from when d_k was any number leads to the power of two that is nearest."""
    asked = widgets.read_url(WIDTH)
    if asked.isascii() and asked.isdecimal() and len(asked) < 10 and int(asked) not in WIDTHS:
        st.session_state.setdefault(WIDTH, min(WIDTHS, key=lambda width: abs(width - int(asked))))


def _bars(query: SampleQuery, divided: bool) -> None:
    """One query's weights, of the scores as they are or divided."""
    weights = query.scaled if divided else query.plain
    plot(
        query_bars(query, divided),
        key=f"attention_scaling_{'divided' if divided else 'example'}",
        alt=words.scaling_alt(query, divided),
        height=370,
        data=pd.DataFrame({"key": np.arange(1, CHOICES + 1), "score": query.scores, "weight": weights}),
        name=f"one-query{'-divided' if divided else ''}",
    )


def _curves(width: int, seed: int) -> None:
    """Spread, entropy and gradients over d_k, of many queries."""
    st.markdown(words.SCALING_CURVES.format(queries=QUERIES, keys=KEYS))
    exponent = _exponent()
    scales = {"no scaling": 0.0, _words(exponent): exponent}
    curves = {name: _measured(WIDTHS, e, seed) for name, e in scales.items()}
    here = {name: _measured((width,), e, seed) for name, e in scales.items()}
    plot(
        scaling_curves(curves, here, theory(width, exponent).entropy),
        key="attention_scaling",
        alt=words.SCALING_CURVES_ALT,
        height=540,
        data=_table(curves, here),
        name="scaling",
    )
    st.markdown(words.gradients(crossing(curves["no scaling"], _measured(WIDTHS, 0.5, seed))))
    _numbers(here["no scaling"], here[_words(exponent)], width, exponent)


def _exponent() -> float:
    name = widgets.select("Scale", SCALES, "attention_scale", first="1/√d_k")
    exponent = EXPONENTS[name]
    if exponent is None:
        label = "Exponent a of the scale 1/d_kᵃ"
        exponent = widgets.slide(label, 0.0, 1.5, 0.25, "attention_exponent", step=0.05)
    return exponent


def _words(exponent: float) -> str:
    return {0.0: "no scaling", 0.5: "scaled by 1/√d_k", 1.0: "scaled by 1/d_k"}.get(
        exponent, f"scaled by 1/d_k^{exponent:g}"
    )


@st.cache_resource(max_entries=256, show_spinner=False)
def _measured(widths: tuple[int, ...], exponent: float, seed: int) -> ScoreScaling:
    return scaling(widths, exponent, seed)


@st.cache_resource(max_entries=256, show_spinner=False)
def _spread(width: int, seed: int) -> float:
    return measured.spread(width, seed)


def _table(*groups: dict[str, ScoreScaling]) -> pd.DataFrame:
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


def _numbers(plain: ScoreScaling, chosen: ScoreScaling, width: int, exponent: float) -> None:
    expected = theory(width, exponent)
    rows = {
        "spread of the scores": (
            plain.spread,
            chosen.spread,
            f"√d_k = {expected.plain_spread:.3f}, scaled {expected.spread:.3f}",
        ),
        "entropy of the softmax (nats)": (
            plain.entropy,
            chosen.entropy,
            f"at most ln {KEYS} = {expected.entropy:.3f}",
        ),
        "norm of the gradient, ‖∂p/∂s‖": (plain.jacobian, chosen.jacobian, "0 lets nothing through"),
        "mean slope, |∂pᵢ/∂sⱼ|": (
            plain.slope,
            chosen.slope,
            f"at most 2(1 − 1/{KEYS})/{KEYS}² = {expected.slope:.6f}",
        ),
    }
    columns = {"no scaling": [f"{a[0]:.4g}" for a, _, _ in rows.values()]}
    columns[_words(exponent)] = [f"{b[0]:.4g}" for _, b, _ in rows.values()]
    columns["for comparison"] = [c for _, _, c in rows.values()]
    st.markdown(f"**Measured at $d_k$ = {width}**")
    st.table(pd.DataFrame(columns, index=pd.Index(list(rows), name="")))


def _worked(seed: int) -> None:
    found = {width: _spread(width, seed) for width in (32, 128)}
    columns = st.columns(3)
    for column, width in zip(columns, found, strict=False):
        with column:
            root = theory(width, 0.0).plain_spread
            formula = f"measured on a million pairs; in theory $\\sqrt{{{width}}} = {root:.2f}$"
            explain.worked(f"Spread at d_k = {width}", f"{found[width]:.2f}", formula)
    with columns[2]:
        zeros = widgets.whole("Number of zeros", 1, 100_000, 99, "attention_zeros")
        among = among_zeros(SCORE, zeros, 128)
        explain.worked(
            f"A score of {SCORE} among {zeros} zeros",
            f"{among.weight:.5f}",
            f"$e^{{{SCORE}}} / (e^{{{SCORE}}} + {zeros})$, $e^{{{SCORE}}} = {among.exponential:.0f}$",
        )
    st.caption(
        f"Each of the zeros gets 1 / (e¹⁴ + {zeros}) = {scientific(among.each_zero)}. Divided by √128, the"
        f" same score is {among.divided:.2f} and takes {among.divided_weight:.4f} of the weight among {zeros}"
        " zeros."
    )
