"""Exercises to write in code: a notebook each, to take along."""

from __future__ import annotations

import streamlit as st

from engine.lab.exercises.notebooks import (
    NAMES,
    counts,
    notebook,
    stub_of,
    task_of,
    title_of,
)
from pages.learn.exercises import words
from ui import explain, widgets


def draw_code() -> None:
    """Draws the view."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles = {name: title_of(name) for name in NAMES}
        name = widgets.select("Notebook", titles, "notebook", kind="list", width=320)
        st.download_button(
            words.DOWNLOAD_NOTEBOOK,
            notebook(name),
            f"{name}.ipynb",
            "application/x-ipynb+json",
            icon=":material/download:",
            on_click="ignore",
            key="notebook_file",
        )
    st.markdown(task_of(name))
    with st.container(height=250, border=False, key="gf-notebook"):
        st.code(stub_of(name), language="python")
    explain.answer(words.code_answer(titles[name], *counts(name)))
