"""The view "RoPE": arrows, the score by distance, turns within the context, the two layouts, and two letters
where waves are added instead.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from engine.measure.positions.position_scores import entrances, position_scores
from engine.measure.positions.rope import rotate_interleaved, score_curve, turned_by, turns
from engine.model import Transformer
from engine.parts.positions import Rope, rotate_half_pairs
from pages.input.positions import words
from pages.input.positions.answers import TITLES
from pages.input.positions.parts import Part
from pages.input.positions.rope_against import draw_against
from pages.input.positions.rope_arrows import draw_arrows
from pages.input.positions.rope_distance import draw_distance
from pages.input.positions.rope_layouts import draw_layouts
from pages.input.positions.rope_turns import draw_turns
from pages.input.positions.shared import fitting_subject
from ui.model_bar import Subject
from ui.page_frame import Code

TURNS = "shakespeare-modern"  # stands in for a model that turns nothing


def _part(title: str, draw: Callable[[Subject], None], *code: Callable[..., object] | type) -> Part:
    """A part about a model that turns its queries and keys."""

    def drawn(subject: Subject) -> None:
        shown = fitting_subject(subject, turns_by_itself, TURNS, _why_not(subject))
        if shown.line:
            st.caption(shown.line)
        draw(shown.subject)

    return Part(title, drawn, words.ROPE, (Rope, rotate_half_pairs, *code), words.ROPE_ASKED)


def _why_not(subject: Subject) -> str:
    if turned_by(subject.model) is None:
        return words.turns_nothing(TITLES[subject.config.position])
    return words.COMPARES_NOTHING


def turns_by_itself(model: Transformer) -> bool:
    """True if a model rotates queries and keys, and compares them."""
    return turned_by(model) is not None and model.parts.mixer(model.config).card.scored


AGAINST: Code = (position_scores, entrances)
PARTS = {
    "arrows": _part("Arrows", draw_arrows),
    "distance": _part("Distance", draw_distance, score_curve),
    "turns": _part("Turns", draw_turns, turns),
    "layouts": _part("Layouts", draw_layouts, rotate_interleaved),
    "added": Part(
        "Against sinusoidal", lambda _: draw_against(), words.AGAINST, AGAINST, words.AGAINST_ASKED
    ),
}
