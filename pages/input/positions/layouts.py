"""RoPE's two layouts: which dimensions pair, that both are the same, and what mixing them up costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from engine.measure import rotary
from engine.measure.distance import softmax
from engine.measure.rotary import SHIFT, LayoutLoss, Layouts
from pages.input.positions import rope_figures as figures
from pages.input.positions.bias_figures import half_width_pattern
from ui import explain
from ui.figures.patterns import pattern_table
from ui.players.plot import plot
from ui.subject import Subject
from ui.text.markdown import safe


@dataclass(frozen=True, eq=False)
class Turning:
    """What is turned: q, k (position, d_head) before rotation, and where they are from. `own`: they belong to
    the model in the bar.
    """

    q: np.ndarray
    k: np.ndarray
    base: float
    own: bool
    words: str
    rotary: int  # dimensions of a head that turn: the first of its `width`

    @property
    def width(self) -> int:
        return self.q.shape[1]


@st.cache_resource(max_entries=32, show_spinner=False)
def _layout_numbers(key: tuple[str, int], ids: tuple[int, ...], words: str, _turning: Turning) -> Layouts:
    return rotary.layouts(_turning.q, _turning.k, _turning.base, _turning.rotary)


@st.cache_resource(max_entries=32, show_spinner=False)
def _layout_loss(key: tuple[str, int], ids: tuple[int, ...], _subject: Subject) -> LayoutLoss | None:
    return rotary.wrong_layout_loss(_subject.model, ids)


def draw_diagram() -> None:
    """Eight dimensions, paired in two ways."""
    st.markdown("Which two dimensions make a pair is a convention. There are two of them:")
    with st.container(key="rope_diagram", width=760):
        alt = (
            "Eight dimensions twice. Half-split: 0 pairs with 4, 1 with 5, 2 with 6, 3 with 7. Interleaved: 0"
            " with 1, 2 with 3, 4 with 5, 6 with 7."
        )
        plot(figures.layout_diagram(), key="rope_layout", height=330, name="rope-layouts", alt=alt)


def draw_layouts(subject: Subject, turning: Turning) -> None:
    """The same scores in both layouts, and what mixing them up costs."""
    found = _layout_numbers(subject.key, subject.ids, turning.words, turning)
    rows = {
        "half-split (the engine's)": "half",
        "dimensions reordered, then interleaved": "permuted",
        "interleaved, nothing reordered": "wrong",
        "q half-split, k interleaved": "crossed",
    }
    st.markdown(
        f"**The same q and k, turned in four ways** ({safe(turning.words)}, {len(subject.ids)} tokens)"
    )
    st.table(
        pd.DataFrame(
            {
                "largest change of a score": [_size(found.difference(name)) for name in rows.values()],
                f"and when all positions move by {SHIFT}": [
                    _size(found.moved[name]) for name in rows.values()
                ],
            },
            index=pd.Index(list(rows), name="layout"),
        )
    )
    st.caption(
        "Scores q·k/√d_head in float64. Row two reorders with half[i] = x[2i], half[i + d/2] = x[2i + 1]: the"
        " same scores, to rounding. Row three is the bug of loading weights of one layout into code of the"
        " other: scores still depend on the distance only, but they are others. In row four that is lost as"
        " well."
    )
    _draw_patterns(subject, found)
    loss = _layout_loss(subject.key, subject.ids, subject) if turning.own else None
    cost = ""
    if loss:
        cost = (
            f" In every head of this model at once, it takes the loss on this text from **{loss.right:.3f}**"
            f" to **{loss.wrong:.3f}** nats per token."
        )
    explain.takeaway(
        "The two layouts are one and the same up to the order of the dimensions: largest difference"
        f" **{found.difference('permuted'):.1e}**. Mixed up, without reordering, scores change by up to"
        f" **{found.difference('wrong'):.2f}**.{cost} No shape is wrong and no error is raised, which is what"
        " makes it a classic bug."
    )


def _size(value: float) -> str:
    """Rounding shows its power of ten, a real change its digits."""
    return f"{value:.2f}" if value > 1e-3 or value == 0 else f"{value:.1e}"


def _draw_patterns(subject: Subject, found: Layouts) -> None:
    """The head's pattern as trained and with the pairs mixed up."""
    hidden = np.where(np.tri(len(found.half), dtype=bool), 0.0, -np.inf) if subject.config.causal else 0.0
    left, right = st.columns(2, gap="medium")
    for column, name, title in (
        (left, "half", "The right pairs"),
        (right, "wrong", "Interleaved, nothing reordered"),
    ):
        pattern = softmax(getattr(found, name) + hidden)
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
    st.caption("Both on one scale: blank is 0, darkest is 1.")
