"""Scores: what the division by √d_k is for, on random queries and keys. It needs no model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.measure.attention import scaling as measured
from engine.measure.attention.scaling import (
    CHOICES,
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
from ui import explain, memo, widgets
from ui.guess import ask
from ui.players.plot import plot

EXPONENTS = {"none": 0.0, "1/√d_k": 0.5, "1/d_k": 1.0, "own": None}
SCORE = 14  # that is worked out: about what a spread of √128 brings by itself


def draw_scaling(line: DeltaGenerator) -> None:
    """Draws one query's weights twice: of the scores as they are, and divided."""
    width = widgets.slide_over(words.WIDTH, WIDTHS, 64, "attention_dk", container=line, width=300)
    seed = widgets.whole(
        words.SEED, 0, 9999, 0, "attention_seed", container=line, hint=words.SEED_HINT, width=120
    )
    query = sample_query(width, seed)
    for column, divided in zip(st.columns(2), (False, True), strict=True):
        with column:
            _bars(query, divided)
    st.caption(words.SCALING_SETTING)
    explain.answer(words.scaled(query))
    ask("width", guesses.width, query, seed)
    explain.measure_it(_curves, width, seed)
    explain.by_hand(_worked, seed)


def _bars(query: SampleQuery, divided: bool) -> None:
    """One query's weights, of the scores as they are or divided."""
    weights = query.scaled if divided else query.plain
    plot(
        query_bars(query, divided),
        key=f"attention_scaling_{'divided' if divided else 'example'}",
        alt=words.scaling_alt(query, divided),
        height=350,
        data=pd.DataFrame({"key": np.arange(1, CHOICES + 1), "score": query.scores, "weight": weights}),
        name=f"one-query{'-divided' if divided else ''}",
    )


def _curves(width: int, seed: int) -> None:
    """Spread, entropy and gradients over d_k, of many queries."""
    st.markdown(words.SCALING_CURVES)
    exponent = _exponent()
    scales = {words.UNSCALED: 0.0, words.scaled_by(exponent): exponent}
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
    st.markdown(words.gradients(crossing(curves[words.UNSCALED], _measured(WIDTHS, 0.5, seed))))
    st.markdown(words.MEASURED_AT.format(width=width))
    st.table(words.numbers_table(here[words.UNSCALED], here[words.scaled_by(exponent)], width, exponent))


def _exponent() -> float:
    scales = {name: name for name in EXPONENTS} | {"own": words.CUSTOM}
    exponent = EXPONENTS[widgets.select(words.SCALE, scales, "attention_scale", first="1/√d_k")]
    if exponent is None:
        exponent = widgets.slide(words.EXPONENT, 0.0, 1.5, 0.25, "attention_exponent", step=0.05)
    return exponent


@memo.measured()
def _measured(widths: tuple[int, ...], exponent: float, seed: int) -> ScoreScaling:
    return scaling(widths, exponent, seed)


@memo.measured()
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


def _worked(seed: int) -> None:
    columns = st.columns(3)
    for column, width in zip(columns, (32, 128), strict=False):
        with column:
            explain.worked(*words.spread_worked(width, _spread(width, seed)))
    with columns[2]:
        zeros = widgets.whole(words.ZEROS, 1, 100_000, 99, "attention_zeros")
        among = among_zeros(SCORE, zeros, 128)
        explain.worked(*words.among_worked(SCORE, zeros, among))
    st.caption(words.each_zero(SCORE, zeros, among))
