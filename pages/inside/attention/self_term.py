"""Scores: why raw similarity looks at itself, and how Q and K take that away. It needs no model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CheckpointError
from engine.experiments.lab_races import rung_losses
from engine.measure.slices import seed_median
from engine.measure.tasks.ladder import (
    KINDS,
    WIDTHS,
    SelfTerm,
    self_term,
)
from pages.inside.attention import words_scores as words
from pages.inside.attention.figures_self import three
from ui import explain, memo, widgets
from ui.fit_text import show_token
from ui.players.plot import plot

TEXT = "First Citizen:"
HEIGHT = 360
SEEDS = 6


def draw_self(line: DeltaGenerator) -> None:
    """Draws three squares, one for each rung: scores or weights before any training."""
    with line:
        d_model = widgets.slide_over(words.SELF_WIDTH, WIDTHS, 256, "attention_width", width=260)
        shown = widgets.select(words.SELF_SHOWN, words.SELF_SHOWS, "attention_self_shown")
        seed = widgets.slide(words.SELF_DRAW, 0, SEEDS - 1, 0, "attention_self_seed", width=200)
    terms = _measured(d_model, seed)
    arrays = [term.weights if shown == "weights" else term.scores for term in terms]
    labels = [show_token(letter) for letter in TEXT]
    plot(
        three(arrays, terms, labels, shown == "scores"),
        key="attention_self",
        height=HEIGHT,
        alt=words.self_alt(terms),
        data=pd.DataFrame(
            {words.RUNG_NAMES[term.kind]: np.diag(array) for term, array in zip(terms, arrays, strict=True)}
        ),
        name="self-term",
    )
    explain.answer(words.self_answer(terms))
    explain.measure_it(_measured_more, seed)
    explain.by_hand(st.markdown, words.SELF_BY_HAND)


@memo.measured(copied=True)
def _measured(d_model: int, seed: int) -> tuple[SelfTerm, ...]:
    ids = CharTokenizer.train(TEXT).encode(TEXT)
    return tuple(self_term(kind, d_model, ids, seed) for kind in KINDS)


def _measured_more(seed: int) -> None:
    """The same at every width, and what the trained rungs made of it."""
    if trained := words.self_trained(_losses()):
        st.markdown(trained)
    rows = [each for d_model in WIDTHS for each in _measured(d_model, seed)]
    st.table(
        pd.DataFrame(
            {
                "width": [each.d_model for each in rows],
                "rung": [words.RUNG_NAMES[each.kind] for each in rows],
                words.OWN: [f"{each.self_score:.2f}" for each in rows],
                "√width": [f"{each.root:g}" for each in rows],
                words.OTHERS: [f"{each.other_score:.2f}" for each in rows],
                words.KEPT: [f"{each.self_weight:.0%}" for each in rows],
            }
        ).set_index("width"),
        border="horizontal",
    )
    st.caption(words.SELF_MEASURED)


def _losses() -> Mapping[str, float]:
    """Returns the rungs' losses, medians over seeds; nothing where their file is missing or broken."""
    try:
        return {name: seed_median(over) for name, over in rung_losses().items()}
    except CheckpointError:
        return {}
