"""Measurements of the view "Why": the outputs row by row, all schemes with and without the mask, and, through
a trained model, `why_order`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.config import Position
from engine.measure.positions.permutation import (
    SCHEMES,
    Comparison,
    Move,
    OrderEffect,
    Plan,
)
from pages.input.positions import figures_why as figures
from pages.input.positions.figures_why import short
from pages.input.positions.why_order import draw_trained
from pages.input.positions.words_answers import TITLES
from ui import explain, widgets
from ui.figures.axes import symmetric
from ui.players.plot import plot
from ui.text.numbers import number

THROUGH = "why_on"
MATERIALS = {"fresh": "These words, random weights", "trained": "A trained model"}
MATCHED, STANDING = "matched", "as given"
MASKS = {False: "no mask", True: "causal mask"}
RANDOM = "random here, as before training"
ENTERS: dict[Position, str] = {
    "none": "nothing encodes the order",
    "sinusoidal": "sinusoids are added to the embeddings",
    "learned": f"a table is added to the embeddings ({RANDOM})",
    "rope": "queries and keys are rotated",
    "alibi": "the scores are penalised by distance",
    "t5": f"the scores get a bias for each distance ({RANDOM})",
}


def draw_measured(
    sentence: list[str], effect: OrderEffect, scheme: Position, causal: bool, move: Move, seed: int
) -> None:
    """Draws the words of the view, or a text through a trained model, in the order that was chosen above."""
    if widgets.select("Through", MATERIALS, THROUGH, hidden=True, wrap=True) == "trained":
        draw_trained(move, seed)
        return
    hint = "Matched: each row is next to the same word's row on the left."
    label = "Rows of the second picture"
    matched = widgets.select(label, (MATCHED, STANDING), "why_rows", hint=hint, wrap=True) == MATCHED
    _draw_pictures(sentence, effect.comparisons[scheme, causal], matched)
    left, right = st.columns([1, 2], gap="medium")
    with left:
        _draw_largest(effect, scheme, causal)
    with right:
        _draw_schemes(effect, scheme, causal)


def _draw_pictures(sentence: list[str], comparison: Comparison, matched: bool) -> None:
    moved = [sentence[i] for i in comparison.order]
    top = symmetric(np.stack((comparison.before, comparison.after)))
    pictures = (
        ("before", "As written", comparison.before, sentence),
        (
            "after",
            "In the new order, matched" if matched else "In the new order",
            comparison.matched if matched else comparison.after,
            sentence if matched else moved,
        ),
        ("difference", "Difference, same scale", comparison.difference, sentence),
    )
    for column, (name, title, values, labels) in zip(st.columns(3, gap="medium"), pictures, strict=True):
        with column:
            st.markdown(title)
            plot(
                figures.word_rows(values, [short(w) for w in labels], top, f"attn_out {name}"),
                key=f"why_{name}",
                height=120 + 28 * len(sentence),
                data=pd.DataFrame(values, columns=[f"dimension {i}" for i in range(values.shape[1])]).assign(
                    word=labels
                ),
                name=f"attention-{name}",
                alt=(
                    f"Attention's output, {name}: one row for each word, one column for each of"
                    f" {values.shape[1]} dimensions."
                ),
            )


def _draw_largest(effect: OrderEffect, scheme: Position, causal: bool) -> None:
    plan = Plan(scheme, causal)
    explain.worked(
        "Largest difference",
        number(effect.largest(scheme, causal)),
        "the largest $|after_w - before_w|$ over all words $w$ and dimensions, float32",
    )
    st.caption(
        f"One attention layer of {plan.n_heads} heads, width {plan.d_model}, seed {plan.seed}, untrained;"
        f" {ENTERS.get(scheme, scheme)}. Its matrices have the standard deviation $1/\\sqrt{{inputs}}$: with"
        " the usual 0.02, all words would attend to each other almost equally."
    )


def _draw_schemes(effect: OrderEffect, scheme: Position, causal: bool) -> None:
    """All six schemes, with and without the mask; the one above is ringed."""
    every = {name: {TITLES[s]: effect.largest(s, mask) for s in SCHEMES} for mask, name in MASKS.items()}
    plot(
        figures.scheme_dots(every, (MASKS[causal], TITLES[scheme])),
        key="why_schemes",
        height=290,
        name="order-by-scheme",
        data=pd.DataFrame(
            [(s, name, v) for name, by in every.items() for s, v in by.items()],
            columns=["scheme", "mask", "largest_difference"],
        ),
        alt=(
            "Largest difference between the outputs in the two orders, for each of six position schemes, with"
            " and without the causal mask, logarithmic."
        ),
    )
