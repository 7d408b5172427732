"""The view "Notebooks": exercises to write in code, a notebook each, to take along."""

from __future__ import annotations

import streamlit as st

from studies.exercises.notebooks import NAMES, counts, notebook, stub_of, task_of, title_of
from ui import content, explain, widgets
from ui.page_frame import View

TEXT = content.beside(__file__)


def draw() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles = {name: title_of(name) for name in NAMES}
        name = widgets.select(TEXT["notebook"], titles, "notebook", kind="list", width=320)
        st.download_button(
            TEXT["download"],
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
    functions, checks = counts(name)
    explain.answer(TEXT("pieces", title=titles[name], functions=functions, checks=checks))


VIEW = View("code", TEXT, draw, code=(notebook,), needs_model=False)
