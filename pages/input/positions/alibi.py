"""The view "ALiBi": one of three topics. Slopes and how far they let a head see, and the bias; what becomes
of a pattern is in `alibi_effect`.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import distance as measured
from pages.input.positions import alibi_figures as figures
from pages.input.positions.alibi_effect import choose_multiplier, draw_effect
from pages.input.positions.shared import choose_mask
from pages.input.positions.shared_figures import bias_heatmap
from ui import explain, widgets
from ui.figures.patterns import pattern_table
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.numbers import minus

MOST_HEADS = 32
LENGTHS = (16, 32, 64, 128)
CORNER = 3  # rows and columns of the bias that are written out


def draw_alibi(subject: Subject) -> None:
    """One of three topics."""
    titles = {name: title for name, (title, _) in TOPICS.items()}
    TOPICS[widgets.one_of("Topic", titles, "alibi_topic", hidden=True)][1](subject)


def _heads(subject: Subject) -> int:
    return widgets.slide("Heads", 1, MOST_HEADS, min(subject.config.n_heads, MOST_HEADS), "alibi_heads")


def draw_slopes(subject: Subject) -> None:
    """What a distance costs each head, and how far it reaches."""
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        heads = _heads(subject)
    with right:
        times = choose_multiplier()
    found, context = measured.slopes(heads, times), subject.config.context
    reaches = {"distance_to_1_over_e": found.to_a_third, "distance_to_1_percent": found.to_a_percent}
    table = pd.DataFrame({"head": np.arange(heads), "slope": found.slope} | reaches)
    left, right = st.columns(2, gap="medium")
    with left:
        st.caption("**What a distance costs**: the weight's factor, a line for each head")
        plot(
            figures.decay_curves(found.slope, context),
            key="alibi_decay",
            height=340,
            name="alibi-decay",
            data=table,
            alt=(
                f"Lines: e to the minus slope times distance for each of {heads} heads, over {context}"
                " positions."
            ),
        )
    with right:
        st.caption(f"**Effective reach**; dotted: the context, {context} tokens")
        plot(
            figures.reach_bars(found, context),
            key="alibi_reach",
            height=340,
            name="alibi-reach",
            data=table,
            alt=f"Bars: the distance at which each of {heads} heads is down to 1/e and to 1 percent.",
        )
    _list_slopes(found)
    explain.takeaway(
        f"Slopes run from **{found.steepest:.4g}** to **{found.flattest:.4g}**. **{found.within(context)} of"
        f" {heads}** {'head comes' if heads == 1 else 'heads come'} down to 1 percent within the context of"
        f" {context}; the flattest head is at {found.farthest(context):.1%} at its far end. Steep heads"
        " read the last few tokens, flat ones the whole text, and nothing of it is learned."
    )


def _list_slopes(found: measured.Slopes) -> None:
    heads = len(found.slope)
    st.dataframe(
        pd.DataFrame(
            {
                "head": np.arange(heads),
                "slope": [_power(float(s)) for s in found.slope],
                "as a number": [f"{s:.6g}" for s in found.slope],
                "1/e at distance": [f"{d:,.1f}" for d in found.to_a_third],
                "1 percent at distance": [f"{d:,.1f}" for d in found.to_a_percent],
            }
        ),
        hide_index=True,
        height=min(38 + 35 * heads, 318),
    )
    st.caption(_rule(heads))


def _power(slope: float) -> str:
    """A slope as a fraction, where it is a whole power of two, else as a power.

    >>> _power(0.25), _power(2**-0.5), _power(2.0)
    ('1/4', '2^(−0.5)', '2')
    """
    exponent = math.log2(slope)
    if exponent != round(exponent):
        return minus(f"2^({exponent:.4g})")
    return f"1/{2 ** -round(exponent)}" if exponent < 0 else f"{2 ** round(exponent)}"


def _rule(heads: int) -> str:
    found = measured.slope_rule(heads)
    power = found.power
    rule = f"The paper's rule for {power} heads: slopes 2^(−8/{power}), 2^(−16/{power}), …, 2^(−8)."
    if not found.rest:
        return f"{rule} For 8 heads these are 1/2, 1/4, …, 1/256."
    return (
        f"{heads} is not a power of two. {rule} The other {found.rest} come from the rule for {2 * power}"
        " heads: every second of its slopes, steepest first."
    )


def draw_matrix(subject: Subject) -> None:
    """What one head adds to the scores."""
    one, two, three = st.columns([3, 3, 2.2], gap="medium", vertical_alignment="bottom")
    with one:
        heads = _heads(subject)
        length = widgets.slide_over("Length", LENGTHS, 32, "alibi_length")
    with two:
        times = choose_multiplier()
        head = widgets.slide("Head", 0, heads - 1, 0, "alibi_matrix_head") if heads > 1 else 0
    with three:
        causal = choose_mask(subject.config.causal, "alibi_mask")
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
        st.caption("Its first corner, in numbers:")
        st.table(_corner(bias))
    side = (
        "A later key is hidden by the mask (blank)."
        if causal
        else "Without a mask the distance counts both ways: before and after look alike to this head."
    )
    far = measured.farthest_key(slope, length)
    explain.takeaway(
        f"The farthest key of this picture is pushed down by **{far.penalty:.4g}**: to e^(−{far.penalty:.4g})"
        f" = {far.factor:.2g} of what it would weigh. {side}"
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
