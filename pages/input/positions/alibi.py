"""The view "ALiBi": what a distance costs each head. Measured: how far that lets a head see, the bias, and,
in `alibi_effect`, what becomes of a pattern.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions import alibi as measured
from pages.input.positions import figures_alibi as figures
from pages.input.positions import words_answers
from pages.input.positions.alibi_effect import choose_multiplier, draw_effect
from pages.input.positions.figures_shared import bias_heatmap
from pages.input.positions.shared import choose_mask, thousands
from pages.input.positions.words_answers import alibi_sentence
from ui import explain, widgets
from ui.figures.patterns import pattern_table
from ui.players.plot import plot
from ui.text.numbers import minus

MOST_HEADS, FIRST_HEADS = 32, 8
LENGTH = 128  # of the text over which the curves are drawn
CONTEXTS = (16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096)
LENGTHS = (16, 32, 64, 128)
CORNER = 3  # rows and columns of the bias that are written out


def draw_alibi() -> None:
    """Draws the cost of distance in each head."""
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        heads = widgets.slide("Heads", 1, MOST_HEADS, FIRST_HEADS, "alibi_heads")
        times = choose_multiplier()
        distance = widgets.slide("Tokens back", 1, LENGTH - 1, 10, "alibi_distance")
    found = measured.slopes(heads, times)
    left = measured.factors(found.slope, np.array([distance]))[:, 0]
    with figure:
        plot(
            figures.decay_curves(found.slope, LENGTH, distance),
            key="alibi_decay",
            height=400,
            name="alibi-decay",
            data=pd.DataFrame({"head": np.arange(heads), "slope": found.slope, f"left_at_{distance}": left}),
            alt=(
                f"Lines: e to the minus slope times distance for each of {heads} heads, over {LENGTH}"
                f" positions; a vertical line at {distance}."
            ),
        )
    explain.answer(alibi_sentence(heads, distance, float(left.min()), float(left.max())))
    explain.measure_it(_draw_measured, heads, times)


def _draw_measured(heads: int, times: float) -> None:
    """One of three topics."""
    titles = {name: title for name, (title, _) in TOPICS.items()}
    TOPICS[widgets.select("Topic", titles, "alibi_topic", hidden=True)][1](heads, times)


def draw_slopes(heads: int, times: float) -> None:
    """Draws how far each head reaches, and where its slope is from."""
    context = widgets.slide_over("Context", CONTEXTS, LENGTH, "alibi_context", written=thousands)
    found = measured.slopes(heads, times)
    reaches = {"distance_to_1_over_e": found.to_a_third, "distance_to_1_percent": found.to_a_percent}
    st.caption(f"**Effective reach**; dotted: the context, {context:,} tokens")
    plot(
        figures.reach_bars(found, context),
        key="alibi_reach",
        height=340,
        name="alibi-reach",
        data=pd.DataFrame({"head": np.arange(heads), "slope": found.slope} | reaches),
        alt=f"Bars: the distance at which each of {heads} heads has decayed to 1/e and to 1 percent.",
    )
    st.markdown(
        f"Slopes run from **{found.steepest:.4g}** to **{found.flattest:.4g}**. **{found.within(context)} of"
        f" {heads}** {'head falls' if heads == 1 else 'heads fall'} to 1 percent within the context of"
        f" {context:,}; at its far end the flattest head keeps {found.farthest(context):.1%}."
    )
    _list_slopes(found)


def _list_slopes(slopes: measured.Slopes) -> None:
    heads = len(slopes.slope)
    st.dataframe(
        pd.DataFrame(
            {
                "head": np.arange(heads),
                "slope": [words_answers.slope_power(float(s)) for s in slopes.slope],
                "decimal": [f"{s:.6g}" for s in slopes.slope],
                "1/e at distance": [f"{d:,.1f}" for d in slopes.to_a_third],
                "1 percent at distance": [f"{d:,.1f}" for d in slopes.to_a_percent],
            }
        ),
        hide_index=True,
        height=min(38 + 35 * heads, 318),
    )
    st.caption(words_answers.slope_rule_words(heads))


def draw_matrix(heads: int, times: float) -> None:
    """Draws what one head adds to the scores."""
    one, two, three = st.columns([3, 3, 2.2], gap="medium", vertical_alignment="bottom")
    length = widgets.slide_over("Sequence length T", LENGTHS, 32, "alibi_length", container=one)
    head = widgets.slide("Head", 0, heads - 1, 0, "alibi_matrix_head", container=two) if heads > 1 else 0
    with three:
        causal = choose_mask(True, "alibi_mask")
    bias = measured.alibi_bias(heads, length, times, causal)[head]
    slope = float(measured.slopes(heads, times).slope[head])
    left, right = st.columns([3, 2], gap="large", vertical_alignment="center")
    with left:
        plot(
            bias_heatmap(bias),
            key="alibi_matrix",
            height=460,
            name=f"alibi-bias-head-{head}",
            data=pattern_table(bias, [""] * length),
            alt=(
                f"Heatmap: minus {slope:.4g} times the distance for {length} queries and keys, zero on the"
                " diagonal."
            ),
        )
    with right:
        st.markdown(f"**Head {head} of {heads}**: slope $m$ = {slope:.6g}")
        st.markdown("$$\\text{scores}_{ij} = \\frac{q_i \\cdot k_j}{\\sqrt{d_{head}}} - m\\,|i - j|$$")
        st.caption("Its top left corner in numbers:")
        st.table(_corner(bias))
    side = (
        "Later keys are hidden by the mask (blank)."
        if causal
        else "Without a mask, distance counts both ways: this head cannot tell before from after."
    )
    far = measured.farthest_key(slope, length)
    st.markdown(
        f"The farthest key in this picture has its score lowered by **{far.penalty:.4g}**, which multiplies"
        f" its weight, before normalisation, by e^(−{far.penalty:.4g}) = {far.factor:.2g}. {side}"
    )


def _corner(bias: np.ndarray) -> pd.DataFrame:
    """The first queries and keys, written out."""
    some = bias[:CORNER, :CORNER]
    cells = [["−∞" if not np.isfinite(v) else minus(f"{v + 0.0:.4g}") for v in row] for row in some]
    return pd.DataFrame(
        cells,
        index=pd.Index([f"query {i}" for i in range(len(some))], name=""),
        columns=[f"key {i}" for i in range(len(some))],
    )


TOPICS = {
    "slopes": ("Slopes and reach", draw_slopes),
    "matrix": ("Bias matrix", draw_matrix),
    "effect": ("Effect on a pattern", draw_effect),
}
