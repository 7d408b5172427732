"""Courses: scenes in an order, on the pages themselves."""

import streamlit as st

from pages.start.courses import words
from ui import state
from ui.look import boundary
from ui.text.markdown import safe
from ui.tour import bar
from ui.tour.courses import Course, shelf


def draw_course(course: Course) -> None:
    """A card: for whom, how long, and the button that starts it."""
    with st.container(border=True, key=f"course_{course.id}", height="stretch"):
        st.subheader(course.title, anchor=False)
        st.markdown(safe(words.facts(course.minutes, len(course.scenes), course.audience)))
        if lacking := bar.missing(course):
            st.caption(f":material/info: {safe(words.lacks(lacking))}")
        if st.button("Start", key=f"start_{course.id}", icon=":material/play_arrow:", type="primary"):
            bar.start(course)


state.drop_endless()
st.title(words.TITLE, anchor=False)
with st.container(key="question_line"):
    st.header(words.QUESTION, anchor=False)
st.markdown(words.LEAD)
with boundary():
    found = shelf()
    if not found.courses:
        st.info(words.NONE)
    columns = st.columns(2)
    for place, one in enumerate(found.courses.values()):
        with columns[place % 2]:
            draw_course(one)
    for problem in found.problems:
        st.warning(safe(problem))
