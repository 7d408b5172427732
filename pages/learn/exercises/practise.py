"""The view "Practise": exercises on the screen, or on a sheet to print."""

from __future__ import annotations

from pages.learn.exercises import on_paper, on_screen
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "practise",
    TEXT,
    needs_model=False,
    parts=Parts("exercises_on", (on_screen.PART, on_paper.PART), label=TEXT["solve"]),
)
