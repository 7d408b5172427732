"""Home: a model that runs, and published ones as drawings."""

import streamlit as st

from engine.measure.families.written_target import write_target
from engine.measure.home.living_map import depth_logits, lanes, outlook, read
from engine.seq2seq import Seq2Seq
from pages.start.home import words, words_pair
from pages.start.home.choice import choose_preset
from pages.start.home.living import draw_living
from pages.start.home.map import draw_map
from pages.start.home.running_pair import draw_running_pair
from ui import families, model_choice, models, session
from ui.model_bar import Choice, choose_subject
from ui.models import REAL_MODEL
from ui.page_frame import (
    Ask,
    Code,
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
from ui.view_parts import Part


def draw_published() -> None:
    """Draws the map of a configuration, with what its parts hold and cost."""
    preset = choose_preset()
    with boundary():
        draw_map(preset)


MAP: Code = (read, lanes, depth_logits, outlook)
FAMILIES: dict[families.Family, Part] = {
    "decoder": Part("Decoder", draw_living, words.LIVING, MAP, words.QUESTION),
    "encoder": Part("Encoder", draw_living, words.FILLING, MAP, words.GAPS_QUESTION),
    "both": Part(
        "Both", draw_running_pair, words_pair.RUNNING, (write_target, Seq2Seq.forward), words.PAIR_QUESTION
    ),
}
FIRST: dict[families.Family, str] = {
    "decoder": REAL_MODEL,
    "encoder": families.FIRST_ENCODER,
    "both": families.FIRST_PAIR,
}
FAMILY = "home_family"  # key


def _part(choice: Choice) -> Part:
    return FAMILIES[_family_of(choice.name)]


VIEWS = (
    View(
        "living",
        "Running model",
        lambda choice: _part(choice).draw(choice),
        lambda choice: _part(choice).words,
        lambda choice: _part(choice).code,
        question=lambda choice: str(_part(choice).question),
        asks=tuple(
            Ask(str(part.question), part.words, () if family == "decoder" else (("model", FIRST[family]),))
            for family, part in FAMILIES.items()
        ),
    ),
    View(
        "published",
        "Published models",
        draw_published,
        words.MAP,
        needs_model=False,
        question=words.PUBLISHED_QUESTION,
    ),
)
PAGE = Page(words.TITLE, "home_view", VIEWS)


def _line() -> View:
    """The views, and beside them the course for whom all of this is new."""
    view = choose_view(VIEWS, PAGE.key)
    course = next(iter(shelf().courses.values()), None)
    # Streamlit's own: it leads to another page.
    if course is not None and st.button(
        words.course(course.minutes), key="to_course", type="primary", icon=":material/play_arrow:"
    ):
        bar.start(course)
    return view


def _family_of(name: str) -> families.Family:
    """A model's family; a run's or a published one's own configuration says it."""
    family = families.family_of(name)
    run = models.run_of(name)
    if family == "decoder" and (run is not None or models.is_pretrained(name)):
        config = run.spec.model if run is not None else models.model_of(name, NEWEST, ()).config
        return "decoder" if config.causal else "encoder"
    return family


def _choose() -> Choice:
    """Draws the bar and, beside it, the switch of its family; another family starts with its first model."""
    switch = st.empty()
    choice = choose_subject(words.FIRST_LETTERS, REAL_MODEL)
    st.session_state[FAMILY] = _family_of(choice.name)
    # Streamlit's own: the model, which stands in the link, has the value.
    switch.segmented_control(
        words.FAMILY,
        list(FAMILIES),
        format_func=lambda family: FAMILIES[family].title,
        key=FAMILY,
        label_visibility="collapsed",
        required=True,
        on_change=_open_family,
    )
    return choice


def _open_family() -> None:
    # a forged message may hold anything, and nothing
    if (first := FIRST.get(st.session_state.get(FAMILY, ""))) is not None:
        model_choice.choose(model_choice.first_of((first,)))


def draw_page() -> None:
    session.drop_endless()
    view = header(words.TITLE, _line)
    note_visit(PAGE, view)
    with question_line() as question:
        about = (_choose(),) if view.needs_model else ()
    view.ask(question, *about)
    with boundary():
        view.draw(*about)
    view.tell(*about)


show(PAGE, draw_page)
