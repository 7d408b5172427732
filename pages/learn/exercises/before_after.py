"""The view "Before and after": a test of misconceptions in two forms, for a reader alone or for a class."""

from __future__ import annotations

from pages.learn.exercises import by_yourself, with_a_class
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "before",
    TEXT,
    needs_model=False,
    shows=("misconceptions", "concept inventory", "pre-test", "post-test", "quiz", "normalised gain"),
    parts=Parts("before_for", (by_yourself.PART, with_a_class.PART), label=TEXT["take it"]),
)
