"""The part "on paper" of the view "Practise": a sheet to print, of chosen sets, a seed and a number."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.learn.exercises.on_screen import choose_seed
from studies.exercises.catalogue import SETS
from studies.exercises.exercise import Exercise
from studies.exercises.sheet import chosen, sheet
from ui import content, explain, widgets
from ui.page_frame import View

TEXT = content.beside(__file__)
FIRST = ("attention", "masks", "shapes", "parameters")
MOST = 40


def draw(line: DeltaGenerator) -> None:
    """Draws what is on a sheet; its seed, which is that of the exercises on screen, stands in a `line`."""
    titles = {name: one.title for name, one in SETS.items()}
    sets = widgets.select_several(TEXT["sets"], titles, "sheet_sets", first=FIRST)
    with line:
        count = widgets.whole(TEXT["exercises"], 1, MOST, 8, "sheet_count", width=130)
        seed = choose_seed()
        # Streamlit's own: a browser lets nobody write more than a heading.
        title = st.text_input(
            TEXT["title"], TEXT["first title"], key="sheet_title", max_chars=80, width=270, **widgets.KEPT
        )
        exercises = chosen(sets, count, seed)
        # Streamlit's own: a file is built when it is asked for, not before.
        st.download_button(
            TEXT["download"],
            lambda: sheet(exercises, title, seed),
            f"exercises-{seed}.html",
            "text/html",
            icon=":material/print:",
            on_click="ignore",
            key="sheet_html",
            disabled=not exercises,
        )
    st.dataframe(_listed(exercises), hide_index=True, height=320)
    sheet_of = "sheet" if exercises else "no exercises"
    explain.answer(TEXT(sheet_of, count=len(exercises), sets=len(sets), seed=seed))


def _listed(exercises: list[Exercise]) -> pd.DataFrame:
    names = {task: one.title for one in SETS.values() for task in one.tasks}
    return pd.DataFrame(
        {
            TEXT["set"]: [names[one.id] for one in exercises],
            TEXT["exercise"]: [one.title for one in exercises],
            TEXT["answer"]: [one.form.text(one.answer).strip("`*") for one in exercises],
        }
    )


PART = View("paper", TEXT, draw, code=(chosen,))
