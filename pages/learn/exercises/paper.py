"""A sheet to print: chosen sets, a seed, a number."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.lab.exercises.catalogue import SETS
from engine.lab.exercises.exercise import Exercise
from engine.lab.exercises.sheet import chosen, sheet
from pages.learn.exercises import words
from pages.learn.exercises.practise import choose_seed
from ui import explain, widgets

FIRST = ("attention", "masks", "shapes", "parameters")
MOST = 40


def draw_sheet(line: DeltaGenerator) -> None:
    """Draws what is on a sheet; its seed, which is that of the exercises on screen, stands in a `line`."""
    titles = {name: one.title for name, one in SETS.items()}
    sets = widgets.select_several("Sets", titles, "sheet_sets", first=FIRST)
    with line:
        count = widgets.whole("Exercises", 1, MOST, 8, "sheet_count", width=130)
        seed = choose_seed()
        title = st.text_input("Title", words.SHEET_TITLE, key="sheet_title", max_chars=80, width=270)
        exercises = chosen(sets, count, seed)
        # Streamlit's own: a file is built when it is asked for, not before.
        st.download_button(
            words.DOWNLOAD_SHEET,
            lambda: sheet(exercises, title, seed),
            f"exercises-{seed}.html",
            "text/html",
            icon=":material/print:",
            on_click="ignore",
            key="sheet_html",
            disabled=not exercises,
        )
    st.dataframe(_listed(exercises), hide_index=True, height=320)
    explain.answer(words.sheet_answer(exercises, len(sets), seed))


def _listed(exercises: list[Exercise]) -> pd.DataFrame:
    names = {task: one.title for one in SETS.values() for task in one.tasks}
    return pd.DataFrame(
        {
            "Set": [names[one.id] for one in exercises],
            "Exercise": [one.title for one in exercises],
            "Answer": [one.form.text(one.answer).strip("`*") for one in exercises],
        }
    )
