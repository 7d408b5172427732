"""Home: a model that runs, and published ones as drawings."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.measure.families.written_target import write_target
from engine.measure.home.living_map import depth_logits, lanes, outlook, read
from engine.seq2seq import Seq2Seq
from pages.start.home import words, words_pair
from pages.start.home.choice import choose_preset
from pages.start.home.living import draw_living
from pages.start.home.map import draw_map
from pages.start.home.running_pair import draw_running_pair
from ui import families, models, session, widgets
from ui.model_bar import Choice, choose_subject
from ui.models import REAL_MODEL
from ui.page_frame import (
    Page,
    View,
    boundary,
    choose_view,
    header,
    note_visit,
    question_line,
    show,
)
from ui.tour import bar
from ui.tour.courses import shelf
from ui.training_step import NEWEST


def draw_published() -> None:
    """Draws the map of a configuration, with what its parts hold and cost."""
    preset = choose_preset()
    with boundary():
        draw_map(preset)


RUNNING = (read, lanes, depth_logits, outlook)
FAMILIES = {"decoder": "living", "encoder": "encoder", "both": "both"}
VIEWS = (
    View("living", "Decoder", draw_living, words.LIVING, RUNNING, question=words.QUESTION),
    View("encoder", "Encoder", draw_living, words.FILLING, RUNNING, question=words.GAPS_QUESTION),
    View(
        "both",
        "Both",
        draw_running_pair,
        words_pair.RUNNING,
        (write_target, Seq2Seq.forward),
        question=words.PAIR_QUESTION,
    ),
    View("published", "Published models", draw_published, words.MAP, question=words.PUBLISHED_QUESTION),
)
KEY, SHOWN = "home_view", "home_view_shown"
PAGE = Page(words.TITLE, KEY, VIEWS)
FIRST = {"living": REAL_MODEL, "encoder": families.FIRST_ENCODER, "both": families.FIRST_PAIR}


def _line() -> DeltaGenerator:
    """The place of the views, and beside them the course for whom all of this is new."""
    place = st.empty()
    course = next(iter(shelf().courses.values()), None)
    # Streamlit's own: it leads to another page.
    if course is not None and st.button(
        words.course(course.minutes), key="to_course", type="primary", icon=":material/play_arrow:"
    ):
        bar.start(course)
    return place


def _view_of(name: str) -> str:
    """The id of the view of a model's family; a run's or a published one's own configuration says it."""
    family = families.family_of(name)
    run = models.run_of(name)
    if family == "decoder" and (run is not None or models.is_pretrained(name)):
        config = run.spec.model if run is not None else models.model_of(name, NEWEST, ()).config
        family = "decoder" if config.causal else "encoder"
    return FAMILIES[family]


def _choose(place: DeltaGenerator, line: DeltaGenerator) -> tuple[View, Choice | None]:
    """(the view, what is looked into). A view of another family than the model's opens with its own first
    model; a model from the bar or a link takes its view along.
    """
    titles = {view.id: view.title for view in VIEWS}
    wanted, choice = widgets.settled(titles, KEY, "living"), None
    if wanted in FIRST:
        if wanted not in (st.session_state.get(SHOWN), _view_of(st.session_state.get(models.CHOSEN, ""))):
            models.choose(models.first_of((FIRST[wanted],)))
        with line:
            choice = choose_subject(words.FIRST_LETTERS, FIRST[wanted])
        widgets.put(KEY, _view_of(choice.name))
    with place:
        view = choose_view(VIEWS, KEY)
    st.session_state[SHOWN] = view.id
    return view, choice


def draw_page() -> None:
    session.drop_endless()
    place = header(words.TITLE, _line)
    with question_line() as question:
        line = st.container(width="content")
    view, choice = _choose(place, line)
    note_visit(PAGE, view)
    view.ask(question)
    with boundary():
        view.draw(*([] if choice is None else [choice]))
    view.tell()


show(PAGE, draw_page)
