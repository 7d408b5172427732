"""A topic of the view "RoPE": how many turns each pair makes within the context."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure.rotary import turned_by
from engine.measure.rotary_curves import turns_within
from pages.input.positions import rope_figures as figures
from pages.input.positions.rope_turning import BASES, WIDTHS, near, near_base
from pages.input.positions.shared import thousands
from ui import explain, widgets
from ui.players.plot import plot
from ui.subject import Subject

BAR, YOURS = "the model in the bar", "your own"
CONTEXTS = (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
# name -> (d_head, base, context, source)
PUBLISHED = {
    "LLaMA 2 7B": (128, 10_000, 4_096, "Touvron et al. 2023"),
    "Llama 3 8B": (128, 500_000, 8_192, "Llama Team 2024"),
}


def draw_turns(subject: Subject) -> None:
    """Of the model in the bar, of published sizes, or of one's own."""
    c = subject.config
    turned = turned_by(subject.model)
    own = (c.d_head, c.rope_theta, c.context) if turned is None else (turned.rotary, turned.base, c.context)
    options = (*((BAR,) if turned is not None else ()), *PUBLISHED, YOURS)
    chosen = widgets.one_of("Model", options, "rope_sizes", hidden=True)
    if chosen == YOURS:
        width, base, context = _sizes(own)
    else:
        width, base, context = own if chosen == BAR else PUBLISHED[chosen][:3]
    source = f" Published sizes: {PUBLISHED[chosen][3]}." if chosen in PUBLISHED else ""
    found = turns_within(width, base, context)
    pairs = len(found.count)
    plot(
        figures.turn_bars(found),
        key="rope_turns",
        height=400,
        name="rope-turns",
        data=pd.DataFrame(
            {
                "pair": np.arange(pairs),
                "theta": found.theta,
                "positions_per_turn": found.positions,
                "turns_in_context": found.count,
            }
        ),
        alt=(
            f"Bars: full turns of each of {pairs} pairs within {context:,} positions, base {base:,.0f};"
            " the dotted line is one turn."
        ),
    )
    st.caption(
        f"turns = context · θᵢ / 2π with θᵢ = base^(−2i/d); {width} dimensions turn, base {base:,.0f},"
        f" context {context:,}.{source}"
    )
    explain.takeaway(
        f"**{found.never} of {pairs} pairs never complete a turn** within {context:,} positions. The fastest"
        f" turns {found.count[0]:,.1f} times, the slowest {found.count[-1]:.3g}: it needs"
        f" {found.positions[-1]:,.0f}"
        " positions for one. "
        + (
            "A fast pair tells near distances apart and repeats itself far away. "
            if found.count[0] > 1
            else ""
        )
        + (
            "A slow pair has seen only a part of its circle in training, so beyond the context it comes to"
            " angles that are new to the model."
            if found.never
            else "Every pair has seen its whole circle in training."
        )
    )


def _sizes(own: tuple[int, float, int]) -> tuple[int, float, int]:
    left, middle, right = st.columns(3, gap="medium")
    width = widgets.slide_over(
        "d_head", WIDTHS, near(own[0], WIDTHS), "rope_turn_width", place=left, written=thousands
    )
    base = widgets.slide_over(
        "Base", BASES, near_base(own[1]), "rope_turn_base", place=middle, written=thousands
    )
    context = widgets.slide_over(
        "Context", CONTEXTS, near(own[2], CONTEXTS), "rope_turn_context", place=right, written=thousands
    )
    return width, float(base), context
