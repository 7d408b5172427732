"""Exercises: worked out by hand, checked with a hint, printed on a sheet."""

from engine.lab.exercises.exercise import check
from engine.lab.exercises.notebooks import notebook
from engine.lab.exercises.sheet import chosen
from pages.learn.exercises import words
from pages.learn.exercises.code import draw_code
from pages.learn.exercises.paper import draw_sheet
from pages.learn.exercises.practise import draw_practise
from ui.page_frame import Page, View, show

show(
    Page(
        "Exercises",
        "exercises_view",
        (
            View(
                "practise",
                "Practise",
                draw_practise,
                words.PRACTISE,
                (check,),
                needs_model=False,
                question=words.PRACTISE_QUESTION,
            ),
            View(
                "code",
                "Notebooks",
                draw_code,
                words.CODE,
                (notebook,),
                needs_model=False,
                question=words.CODE_QUESTION,
            ),
            View(
                "sheet",
                "Worksheet",
                draw_sheet,
                words.SHEET,
                (chosen,),
                needs_model=False,
                question=words.SHEET_QUESTION,
            ),
        ),
    )
)
