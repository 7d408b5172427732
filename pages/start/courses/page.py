"""Courses: scenes in an order, on the pages themselves."""

import streamlit as st

from pages.start.courses import words
from ui import explain, session
from ui.page_frame import Page, View, boundary, header, question_line, show
from ui.text.markdown import safe
from ui.tour import bar
from ui.tour.courses import Course, shelf

COLUMNS = 3


def draw_course(course: Course) -> None:
    """Draws a card: for whom, how long, and the button that starts it."""
    with st.container(border=True, key=f"course_{course.id}", height="stretch"):
        st.subheader(course.title, anchor=False)
        st.markdown(safe(words.facts(course.minutes, len(course.scenes), course.audience)))
        if lacking := bar.missing(course):
            st.caption(f":material/info: {safe(words.lacks(lacking))}")
        if st.button("Start", key=f"start_{course.id}", icon=":material/play_arrow:", type="primary"):
            bar.start(course)


def draw_page() -> None:
    session.drop_endless()
    header(words.TITLE, lambda: None)
    with question_line() as question:
        question.header(words.QUESTION, anchor=False)
    with boundary():
        draw_courses()


def draw_courses() -> None:
    """Draws a card for each course, and a sentence about each file that cannot be read."""
    listed = list(shelf().courses.values())
    if listed:
        explain.answer(words.answer([course.minutes for course in listed]))
    else:
        st.info(words.NONE)
    for row in range(0, len(listed), COLUMNS):  # by rows: on a phone they stand in their order, too
        for column, listed_course in zip(st.columns(COLUMNS), listed[row : row + COLUMNS], strict=False):
            with column:
                draw_course(listed_course)
    for problem in shelf().problems:
        st.warning(safe(problem))


VIEW = View("courses", words.TITLE, draw_courses, needs_model=False, question=words.QUESTION)
show(Page(words.TITLE, "", (VIEW,)), draw_page)
