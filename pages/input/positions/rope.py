"""The view "RoPE": one of four topics, of a model that turns."""

from __future__ import annotations

import streamlit as st

from engine.measure.positions.rope import turned_by
from engine.model import Transformer
from pages.input.positions.answers import TITLES
from pages.input.positions.rope_arrows import draw_arrows
from pages.input.positions.rope_distance import draw_distance
from pages.input.positions.rope_layouts import draw_layouts
from pages.input.positions.rope_turns import draw_turns
from pages.input.positions.shared import fitting_subject
from ui import widgets
from ui.model_bar import Subject

TURNS = "shakespeare-modern"  # stands in for a model that turns nothing
TOPICS = {
    "arrows": ("Arrows", draw_arrows),
    "distance": ("Distance", draw_distance),
    "turns": ("Turns", draw_turns),
    "layouts": ("Layouts", draw_layouts),
}


def draw_rope(subject: Subject) -> None:
    """Draws one of four topics, each on its own screen."""
    c = subject.config
    why = (
        f"turns nothing (positions: {TITLES[c.position]})"
        if turned_by(subject.model) is None
        else "compares no queries with keys"
    )
    shown = fitting_subject(subject, turns_by_itself, TURNS, why)
    left, right = st.columns([1, 2], vertical_alignment="center")
    titles = {name: title for name, (title, _) in TOPICS.items()}
    topic = widgets.select("Topic", titles, "rope_topic", hidden=True, container=left)
    if shown.line:
        right.caption(shown.line)
    TOPICS[topic][1](shown.subject)


def turns_by_itself(model: Transformer) -> bool:
    """True if a model rotates queries and keys, and compares them."""
    return turned_by(model) is not None and model.parts.mixer(model.config).card.scored
