"""Exercises: worked out by hand, checked with a hint, printed on a sheet."""

from engine.lab.exercises.exercise import check
from engine.lab.exercises.notebooks import notebook
from engine.lab.exercises.sheet import chosen
from pages.learn.exercises import words
from pages.learn.exercises.code import draw_code
from pages.learn.exercises.paper import draw_sheet
from pages.learn.exercises.practise import draw_practise
from ui.page_frame import Page, View, show
from ui.view_parts import Part, view_of_parts

PRACTISE = {
    "screen": Part("on screen", draw_practise, words.PRACTISE, (check,), words.PRACTISE_QUESTION),
    "paper": Part("on paper", draw_sheet, words.SHEET, (chosen,), words.SHEET_QUESTION),
}

show(
    Page(
        "Exercises",
        "exercises_view",
        (
            view_of_parts("practise", "Practise", "exercises_on", PRACTISE, label=words.SOLVE),
            View(
                "code",
                "Notebooks",
                draw_code,
                words.CODE,
                (notebook,),
                needs_model=False,
                question=words.CODE_QUESTION,
            ),
        ),
    )
)
