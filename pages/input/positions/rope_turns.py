"""A topic of the view "RoPE": how many turns each pair makes within the context."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.positions.rope import turned_by, turns_within
from pages.input.positions import figures_rope as figures
from pages.input.positions import words_measured
from pages.input.positions.rope_turning import BASES, WIDTHS, near, near_base
from pages.input.positions.shared import thousands
from pages.input.positions.words_answers import turns_sentence
from ui import explain, widgets
from ui.model_bar import Subject
from ui.players.plot import plot

BAR, YOURS = "the model in the bar", "your own"
CONTEXTS = (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
# name -> (d_head, base, context, source)
PUBLISHED = {
    "Llama 2 7B": (128, 10_000, 4_096, "Touvron et al. 2023"),
    "Llama 3 8B": (128, 500_000, 8_192, "Llama Team 2024"),
}


def draw_turns(subject: Subject) -> None:
    """Draws the turns of the model that is shown, of published sizes, or of custom ones."""
    turned = turned_by(subject.model)
    assert turned is not None
    sizes = (turned.rotary, turned.base, subject.config.context)
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        titles = {BAR: "This model"} | {name: name for name in (*PUBLISHED, YOURS)}
        chosen = widgets.select("Sizes of", titles, "rope_sizes", wrap=True)
        if chosen == YOURS:
            width, base, context = _sizes(sizes)
        else:
            width, base, context = sizes if chosen == BAR else PUBLISHED[chosen][:3]
        source = f" Published sizes: {PUBLISHED[chosen][3]}." if chosen in PUBLISHED else ""
        st.caption(f"{width} dimensions rotate, base {base:,.0f}, context {context:,}.{source}")
    turns = turns_within(width, base, context)
    pairs = len(turns.count)
    with figure:
        plot(
            figures.turn_bars(turns),
            key="rope_turns",
            height=400,
            name="rope-turns",
            data=pd.DataFrame(
                {
                    "pair": np.arange(pairs),
                    "theta": turns.theta,
                    "positions_per_turn": turns.positions,
                    "turns_in_context": turns.count,
                }
            ),
            alt=(
                f"Bars: full turns of each of {pairs} pairs within {context:,} positions, base {base:,.0f};"
                " the dotted line is one turn."
            ),
        )
    explain.answer(turns_sentence(turns, context))
    explain.by_hand(
        st.markdown,
        words_measured.by_hand(context, turns.count[0]),
    )


def _sizes(sizes: tuple[int, float, int]) -> tuple[int, float, int]:
    width = widgets.slide_over("d_head", WIDTHS, near(sizes[0], WIDTHS), "rope_turn_width", written=thousands)
    base = widgets.slide_over("Base", BASES, near_base(sizes[1]), "rope_turn_base", written=thousands)
    context = widgets.slide_over(
        "Context", CONTEXTS, near(sizes[2], CONTEXTS), "rope_turn_context", written=thousands
    )
    return width, float(base), context
