"""A topic of the view "RoPE": its two layouts. Which dimensions pair, that both are the same, and what
mixing them up costs.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.measure.positions import rope
from engine.measure.positions.rope import SHIFT, LayoutLoss, Layouts, layout_pattern
from pages.input.positions import figures_rope as figures
from pages.input.positions import words_measured
from pages.input.positions.maps import half_width_pattern
from pages.input.positions.rope_turning import Turning, turning
from pages.input.positions.words_answers import layouts_sentence
from ui import explain, memo
from ui.figures.patterns import pattern_table
from ui.model_bar import Subject
from ui.players.plot import plot
from ui.text.numbers import scientific


@memo.measured()
def _layout_numbers(key: tuple[str, int], ids: tuple[int, ...], words: str, _turning: Turning) -> Layouts:
    return rope.layouts(_turning.q, _turning.k, _turning.base, _turning.rotary)


@memo.measured()
def _layout_loss(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> LayoutLoss | None:
    return rope.wrong_layout_loss(_subject.model, ids)


def draw_layouts(subject: Subject) -> None:
    """Draws eight dimensions, paired in two ways, and what mixing them up costs this model."""
    figure, controls = st.columns([5, 2], gap="medium")
    with controls:
        turned = turning(subject)
        st.caption("There are two conventions for which dimensions form a pair.")
    with figure:
        alt = words_measured.LAYOUTS_ALT
        plot(figures.layout_diagram(), key="rope_layout", height=340, name="rope-layouts", alt=alt)
    layouts = _layout_numbers(subject.key, subject.ids, turned.words, turned)
    loss = _layout_loss(subject.key, subject.ids, subject)
    explain.answer(layouts_sentence(layouts, loss))
    explain.measure_it(_draw_measured, subject, turned, layouts)


def _draw_measured(subject: Subject, turned: Turning, layouts: Layouts) -> None:
    """The same scores in both layouts, and mixed up; the head's pattern then."""
    rows = {
        "half-split (the engine's)": "half",
        "dimensions reordered, then interleaved": "permuted",
        "interleaved, nothing reordered": "wrong",
        "q half-split, k interleaved": "crossed",
    }
    st.markdown(words_measured.four_ways(turned.words, len(subject.ids)))
    st.table(
        pd.DataFrame(
            {
                "largest change of a score": [_size(layouts.difference(name)) for name in rows.values()],
                f"with all positions shifted by {SHIFT}": [
                    _size(layouts.moved[name]) for name in rows.values()
                ],
            },
            index=pd.Index(list(rows), name="layout"),
        )
    )
    st.caption(words_measured.FOUR_WAYS)
    _draw_patterns(subject, layouts)


def _size(value: float) -> str:
    """Rounding shows its power of ten, a real change its digits."""
    return f"{value:.2f}" if value > 1e-3 or value == 0 else scientific(value)


def _draw_patterns(subject: Subject, layouts: Layouts) -> None:
    """The head's pattern as trained and with the pairs mixed up."""
    left, right = st.columns(2, gap="medium")
    visible = subject.recording().seen()
    for column, name, title in (
        (left, "half", "The right pairs"),
        (right, "wrong", "Interleaved, nothing reordered"),
    ):
        pattern = layout_pattern(layouts, name, visible)
        with column:
            st.caption(f"**{title}**: pattern")
            plot(
                half_width_pattern(pattern, subject.labels),
                key=f"rope_pattern_{name}",
                height=440,
                name=f"pattern-{name}",
                data=pattern_table(pattern, subject.labels),
                alt=f"{title}: the weight that each token (down) gives to each token it sees, from 0 to 1.",
            )
    st.caption("Both on the same scale: blank is 0, the strongest colour is 1.")
