"""The button that starts the first course, for whom all of this is new."""

from __future__ import annotations

import streamlit as st

from ui import content
from ui.tour import bar
from ui.tour.courses import shelf

TEXT = content.beside(__file__)


def draw() -> None:
    course = next(iter(shelf().courses.values()), None)
    if course is None:
        return
    label = TEXT("start", minutes=course.minutes)
    # Streamlit's own: it leads to another page.
    if st.button(label, key="to_course", type="primary", icon=":material/play_arrow:"):
        bar.start(course)
