"""The page "Courses": scenes in an order, on the pages themselves."""

from __future__ import annotations

import streamlit as st

from ui import content, explain, returns
from ui.page_frame import View
from ui.players.component import mounted
from ui.text.markdown import safe
from ui.tour import bar
from ui.tour.courses import Course, shelf

TEXT = content.beside(__file__)
COLUMNS = 3


def draw() -> None:
    """Draws a card for each course, and a sentence about each file that cannot be read."""
    listed = list(shelf().courses.values())
    if listed:
        explain.answer(answer([course.minutes for course in listed]))
    else:
        st.info(TEXT["none"])
    for row in range(0, len(listed), COLUMNS):  # by rows: on a phone they stand in their order, too
        for column, course in zip(st.columns(COLUMNS), listed[row : row + COLUMNS], strict=False):
            with column:
                _card(course)
    returns.draw_progress(returns=False)
    for problem in shelf().problems:
        st.warning(safe(problem))


def answer(minutes: list[int]) -> str:
    """Says what courses there are, and how they go; `minutes` of each."""
    case = "one" if len(minutes) == 1 else "alike" if len(set(minutes)) == 1 else "several"
    return f"{TEXT(case, many=len(minutes), least=min(minutes), most=max(minutes))} {TEXT['how']}"


def _card(course: Course) -> None:
    """Draws for whom it is, how long, and the button that starts it."""
    with st.container(border=True, key=f"course_{course.id}", height="stretch"):
        st.subheader(course.title, anchor=False)
        st.markdown(
            TEXT("facts", minutes=course.minutes, scenes=len(course.scenes), audience=course.audience)
        )
        if lacking := bar.missing(course):
            several = len(lacking) > 1
            st.caption(TEXT("lacks several" if several else "lacks one", models=" and ".join(lacking)))
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            if st.button(
                TEXT["start"], key=f"start_{course.id}", icon=":material/play_arrow:", type="primary"
            ):
                bar.start(course)
            _mark(course)


def _mark(course: Course) -> None:
    """Draws how far this browser has come in a course, which it alone knows, and goes on from there."""
    result = mounted("course_mark", styles=("course_mark",))(
        key=f"mark_{course.id}",
        data={"id": course.id, "count": len(course.scenes)},
        on_scene_change=lambda: None,
    )
    at = getattr(result, "scene", None)
    if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < len(course.scenes):
        bar.start(course, at)


VIEW = View("courses", TEXT, draw, needs_model=False)
