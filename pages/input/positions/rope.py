"""The view "RoPE": one of four topics."""

from __future__ import annotations

from pages.input.positions.rope_arrows import draw_arrows
from pages.input.positions.rope_distance import draw_distance
from pages.input.positions.rope_layouts import draw_layouts
from pages.input.positions.rope_turns import draw_turns
from ui import widgets
from ui.subject import Subject

TOPICS = {
    "arrows": ("Arrows that turn", draw_arrows),
    "distance": ("Score and distance", draw_distance),
    "turns": ("Turns in the context", draw_turns),
    "layouts": ("Two layouts", draw_layouts),
}


def draw_rope(subject: Subject) -> None:
    """One of four topics, each on its own screen."""
    titles = {name: title for name, (title, _) in TOPICS.items()}
    TOPICS[widgets.one_of("Topic", titles, "rope_topic", hidden=True)][1](subject)
