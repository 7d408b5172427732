"""Home: a model that runs, and published ones as drawings."""

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.measure.families.written_target import write_target
from engine.measure.home.living_map import depth_logits, lanes, outlook, read
from engine.seq2seq import Seq2Seq
from pages.start.home import words, words_pair
from pages.start.home.choice import choose_preset
from pages.start.home.living import draw_living
from pages.start.home.map import draw_map
from ui import explain, session, site
from ui.page_frame import (
    View,
    boundary,
    choose_view,
    header,
)


def draw_published() -> None:
    """Draws the map of a configuration, with what its parts hold and cost."""
    preset = choose_preset()
    with boundary():
        draw_map(preset)


VIEWS = (
    View(
        "living",
        "Running",
        draw_living,
        words.LIVING,
        (read, lanes, depth_logits, outlook),
        question=words.QUESTION,
    ),
    View("published", "Published models", draw_published, words.MAP, question=words.PUBLISHED_QUESTION),
)

LIVING_OF = {
    "encoder": replace(VIEWS[0], words=words.FILLING),
    "both": replace(VIEWS[0], words=words_pair.RUNNING, code=(write_target, Seq2Seq.forward)),
}
session.drop_endless()


def _line() -> tuple[View, DeltaGenerator]:
    """The views, beside them the way to the courses, and the place of the family."""
    chosen = choose_view(VIEWS, "home_view")
    if st.button(words.COURSES, key="to_courses", type="tertiary", icon=":material/route:"):
        st.switch_page(site.COURSES, query_params={})
    return chosen, st.empty()


view, family_place = header(words.TITLE, _line)
explain.new_view(f"home_view/{view.id}")
with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="question_line"):
    question = st.empty()
    bar = st.container(width="content")
with boundary():
    if view.id == "living":
        family = draw_living(bar, family_place)
        question.header(words.QUESTIONS[family], anchor=False)
        view = LIVING_OF.get(family, view)
    else:
        view.ask(question)
        draw_published()
view.tell()
