"""The view "Bigrams": what a bigram model learned, and what it cannot learn."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.experiments.bigram_expectations import (
    DOUBLE,
    SEEING,
    SINGLE,
    TABLE,
    Expectations,
    shipped,
)
from pages.lab.ladder import words_bigrams as words
from pages.lab.ladder.figures_bigrams import panels
from ui import explain, widgets
from ui.players.plot import plot

HEIGHT = 400
TOP = 5


def draw_pairs() -> None:
    """Draws six small bar charts: after four letters, and after two pairs of letters."""
    expectations = shipped()
    other = widgets.select(words.BESIDE, words.RUNGS, "ladder_seeing", first=SEEING[-1])
    plot(
        panels(expectations, other, TOP),
        key="ladder_pairs",
        height=HEIGHT,
        alt=words.alt(expectations, other),
        data=_shares(expectations, other),
        name="pairs",
    )
    explain.answer(words.answer(expectations, other))
    explain.measure_it(_measured, expectations)


def _shares(expectations: Expectations, other: str) -> pd.DataFrame:
    rows = [
        {"after": context, "letter": letter}
        | {source: expectations.of(source, context, letter) for source in ("text", TABLE, other)}
        for context in (*SINGLE, *DOUBLE)
        for letter in expectations.top(context, TOP)
    ]
    return pd.DataFrame(rows)


def _measured(expectations: Expectations) -> None:
    """How differently each goes on after the two pairs, and its loss."""
    sources = (TABLE, *SEEING)
    st.table(
        pd.DataFrame(
            {
                words.APART: [f"{expectations.apart(s):.3f}" for s in ("text", *sources)],
                words.LOSS: ["", *(f"{expectations.losses[s]:.3f}" for s in sources)],
            },
            index=[words.TEXT, *(words.name(s) for s in sources)],
        ),
        border="horizontal",
    )
    st.caption(words.MEASURED)
    st.caption(words.made(expectations))
