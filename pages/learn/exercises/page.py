"""Exercises: worked out by hand, checked with a hint, printed on a sheet."""

from pages.learn.exercises import notebooks, on_paper, on_screen
from ui.page_frame import Page, show
from ui.view_parts import view_of_parts

PRACTISE = {"screen": on_screen.PART, "paper": on_paper.PART}

show(
    Page(
        "Exercises",
        "exercises_view",
        (view_of_parts("practise", "Practise", "exercises_on", PRACTISE, label="Solve"), notebooks.VIEW),
    )
)
