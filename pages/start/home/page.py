"""Home: a model that runs, and published ones as drawings."""

import streamlit as st

from engine.measure.living import lanes, read
from engine.measure.living_said import depth_logits, outlook
from pages.start.home import words
from pages.start.home.choice import choose_preset
from pages.start.home.living import draw_living
from pages.start.home.map import draw_map
from ui import explain, site, state
from ui.look import View, boundary, choose_view, header


def draw_published() -> None:
    """The map of a configuration, with what its parts hold and cost."""
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

state.drop_endless()
if "preset" in st.query_params and "home_view" not in {*st.query_params, *st.session_state}:
    st.query_params["home_view"] = "published"  # links to a drawing are older than the choice


def choose() -> View:
    """The view, and beside it the way to the courses."""
    chosen = choose_view(VIEWS, "home_view")
    if st.button(words.COURSES, key="to_courses", type="tertiary", icon=":material/route:"):
        st.switch_page(site.COURSES, query_params={})
    return chosen


view = header(words.TITLE, choose)
explain.new_view(f"home_view/{view.id}")
with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="question_line"):
    view.ask(st.empty())
    bar = st.container(width="content")
with boundary():
    if view.id == "living":
        draw_living(bar)
    else:
        draw_published()
view.tell()
