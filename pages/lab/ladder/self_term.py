"""The view "Self-term": why raw similarity looks at itself, and what takes that away."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.tokenizers.char import CharTokenizer
from engine.experiments.lab_races import RUNGS
from engine.experiments.ladder_gains import losses
from engine.measure.tasks.ladder import (
    KINDS,
    WIDTHS,
    SelfTerm,
    self_term,
)
from pages.lab.ladder import words_self as words
from pages.lab.ladder.self_figure import three
from pages.lab.ladder.shared import stored
from ui import explain, widgets
from ui.fit_text import show_token
from ui.players.plot import plot

TEXT = "First Citizen:"
HEIGHT = 360
SEEDS = 6


def draw_self() -> None:
    """Draws three squares, one for each rung: scores or weights before any training."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        d_model = widgets.slide_over(words.WIDTH, WIDTHS, 256, "ladder_width", width=260)
        shown = widgets.select(words.SHOWN, words.SHOWS, "ladder_shown")
        seed = widgets.slide(words.SEED, 0, SEEDS - 1, 0, "ladder_self_seed", width=200)
    found = _measured(d_model, seed)
    arrays = [each.weights if shown == "weights" else each.scores for each in found]
    labels = [show_token(letter) for letter in TEXT]
    plot(
        three(arrays, found, labels, shown == "scores"),
        key="ladder_self",
        height=HEIGHT,
        alt=words.alt(found),
        data=pd.DataFrame(
            {words.NAMES[each.kind]: np.diag(array) for each, array in zip(found, arrays, strict=True)}
        ),
        name="self-term",
    )
    race = stored(RUNGS)
    explain.answer(words.answer(found, losses(race.runs) if race else {}))
    explain.measure_it(_widths, seed)


@st.cache_data(max_entries=len(WIDTHS) * SEEDS, show_spinner=False)
def _measured(d_model: int, seed: int) -> tuple[SelfTerm, ...]:
    ids = CharTokenizer.train(TEXT).encode(TEXT)
    return tuple(self_term(kind, d_model, ids, seed) for kind in KINDS)


def _widths(seed: int) -> None:
    """The same at every width."""
    rows = [each for d_model in WIDTHS for each in _measured(d_model, seed)]
    st.table(
        pd.DataFrame(
            {
                "width": [each.d_model for each in rows],
                "rung": [words.NAMES[each.kind] for each in rows],
                words.OWN: [f"{each.self_score:.2f}" for each in rows],
                "√width": [f"{each.root:g}" for each in rows],
                words.OTHERS: [f"{each.other_score:.2f}" for each in rows],
                words.KEPT: [f"{each.self_weight:.0%}" for each in rows],
            }
        ).set_index("width"),
        border="horizontal",
    )
    st.caption(words.MEASURED)
