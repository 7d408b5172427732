"""The part "Turns" of "RoPE": how many turns each pair makes within the context."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from engine.parts.positions import Rope, rotate_half_pairs
from pages.input.positions.rotated_head import BASES, WIDTHS, near, near_base
from studies.positions.rope import Turns, turned_by, turns_within
from studies.positions.rope import turns as turns_of
from ui import content, explain, widgets
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.page_frame import View
from ui.players.plot import plot

TEXT = content.beside(__file__)
BAR, YOURS = "the model in the bar", "your own"  # in addresses
CONTEXTS = (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
# name -> (d_head, base, context, source)
PUBLISHED = {
    "Llama 2 7B": (128, 10_000, 4_096, "Touvron et al. 2023"),
    "Llama 3 8B": (128, 500_000, 8_192, "Llama Team 2024"),
}


def draw(subject: Subject) -> None:
    """Draws the turns of the model that is shown, of published sizes, or of custom ones."""
    turned = turned_by(subject.model)
    assert turned is not None
    sizes = (turned.rotary, turned.base, subject.config.context)
    figure, controls = st.columns([3, 1], gap="medium")
    with controls:
        titles = {BAR: TEXT["this model"]} | {name: name for name in (*PUBLISHED, YOURS)}
        chosen = widgets.select(TEXT["sizes"], titles, "rope_sizes", wrap=True)
        if chosen == YOURS:
            width, base, context = _sizes(sizes)
        else:
            width, base, context = sizes if chosen == BAR else PUBLISHED[chosen][:3]
        said = [TEXT("rotating", width=width, base=base, context=context)]
        if chosen in PUBLISHED:
            said.append(TEXT("published", source=PUBLISHED[chosen][3]))
        st.caption(" ".join(said))
    turns = turns_within(width, base, context)
    pairs = len(turns.count)
    with figure:
        plot(
            turn_bars(turns),
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
            alt=TEXT("alt", pairs=pairs, context=context, base=base),
        )
    explain.answer(
        TEXT(
            "some incomplete" if turns.never else "all complete",
            never=turns.never,
            pairs=pairs,
            context=context,
            fastest=turns.count[0],
            slowest=turns.positions[-1],
        )
    )
    explain.by_hand(st.markdown, TEXT("by hand", context=context, fastest=turns.count[0]))


def _sizes(sizes: tuple[int, float, int]) -> tuple[int, float, int]:
    first = near(sizes[0], WIDTHS), near_base(sizes[1]), near(sizes[2], CONTEXTS)
    written = "{:,}".format
    width = widgets.slide_over(TEXT["width"], WIDTHS, first[0], "rope_turn_width", written=written)
    base = widgets.slide_over(TEXT["base"], BASES, first[1], "rope_turn_base", written=written)
    context = widgets.slide_over(TEXT["context"], CONTEXTS, first[2], "rope_turn_context", written=written)
    return width, float(base), context


def turn_bars(turns: Turns) -> go.Figure:
    """Draws full turns of each pair within the context, on a logarithmic axis; incomplete ones are grey."""
    counts, never = turns.count, turns.incomplete
    pairs = np.arange(len(counts))
    traces = []
    for name, mask, shade in (
        (TEXT["complete"], ~never, "position"),
        (TEXT["incomplete"], never, "quiet"),
    ):
        if not mask.any():
            continue
        traces.append(
            go.Bar(
                name=name,
                x=pairs[mask],
                y=counts[mask].astype(np.float64),
                marker={"color": colour(shade)},
                customdata=np.stack((turns.theta[mask], turns.positions[mask]), -1),
                hovertemplate=f"{TEXT['hover']}<extra></extra>",
            )
        )
    low, high = np.log10(min(counts.min(), 0.5)), np.log10(max(counts.max(), 2.0))
    return go.figure(
        traces,
        margin={"l": 60, "r": 12, "t": 34, "b": 44},
        bargap=0.15,
        **go.level(TEXT["one turn"], 1, "output", y=0),
        xaxis=go.axis(TEXT["pair"], zeroline=False),
        yaxis=go.axis(
            TEXT["turns"],
            showgrid=True,
            type="log",
            range=[low - 0.15, high + 0.15],
            exponentformat="power",
            dtick=1 if high - low < 6 else 2,
        ),
    )


PART = View("turns", TEXT, draw, (Rope, rotate_half_pairs, turns_of))
