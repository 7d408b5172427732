"""Circuits: famous experiments, each one click from its result."""

from pages.inside.circuits import words
from pages.inside.circuits.patching import draw_patching
from ui.look import Page, View, show

show(
    Page(
        "Circuits: which parts do the work",
        "circuits_view",
        (
            View(
                "patching", "Where does it keep what it needs?", draw_patching, words.PATCHING, own_text=True
            ),
        ),
        text=words.TEXT,
    )
)
