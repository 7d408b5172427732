"""The page where phones answer what a lecturer asks: one question, its answers to choose from; or a test."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from engine.errors import GlassformerError
from runs.quizzes import Quizzes
from runs.rooms import Question, Rooms
from ui import content, inventory, live, session, widgets
from ui.players.component import mounted
from ui.text.markdown import safe
from ui.text.tokens import show_characters

TEXT = content.beside(__file__)
POLL_SECONDS = 2.0
CHOSEN, LETTERS, TEST = "room_answer", "room_letters", "room_test"


def draw() -> None:
    with st.container(key="room_page"):
        test = bool(widgets.read_url(inventory.QUERY))
        st.title(TEXT["test"] if test else TEXT.title, anchor=False)
        (_test if test else _question)()


@st.fragment
def _question() -> None:
    """Draws the question of the moment; the browser follows it, until the room has ended."""
    room, person, rooms = widgets.read_url("id"), session.owner(), session.rooms()
    live.follow("room", lambda: live.Sight(_seen(rooms, room)), every=POLL_SECONDS)
    try:
        asked = rooms.look(room)
        chosen = rooms.choice(room, person)
    except GlassformerError as error:
        st.info(str(error), icon=":material/info:")
        return
    if asked.letters:
        data = {"text": asked.text, "alphabet": asked.answers, "chosen": chosen, "open": asked.open}
        mounted("letters", styles=("shared/alphabet", "letters"))(
            key=LETTERS, data=data, on_chosen_change=partial(_choose_letter, asked, person)
        )
        st.caption(_said(asked, chosen))
        return
    st.header(safe(asked.text), anchor=False)
    if asked.open and asked.before:
        st.caption(TEXT["second vote"])
    for index, answer in enumerate(asked.answers):
        st.button(
            safe(answer),
            key=f"{CHOSEN}_{asked.number}_{index}",
            type="primary" if index == chosen else "secondary",
            width="stretch",
            disabled=not asked.open,
            on_click=_choose,
            args=(asked, person, index),
        )
    st.caption(_said(asked, chosen))


@st.fragment
def _test() -> None:
    """Draws the form of the moment; the browser follows the room, until that has ended."""
    room, person, quizzes = widgets.read_url(inventory.QUERY), session.owner(), session.quizzes()
    live.follow("quiz", lambda: live.Sight(_state(quizzes, room)), every=POLL_SECONDS)
    try:
        quiz, held = quizzes.look(room), quizzes.answers(room, person)
    except GlassformerError as error:
        st.info(str(error), icon=":material/info:")
        return
    words = {"wait": TEXT["wait"], "first closed": TEXT["first closed"], "done": TEXT["done"]}
    both, answer = inventory.forms(quiz.seed), partial(_answer, room, person)
    inventory.draw_test(TEST, quiz.room, both, words, quiz=quiz, held=held, on_answered=answer)


def _state(quizzes: Quizzes, room: str) -> object:
    """Returns the state that a phone shows of a test: the form, and whether it is open."""
    try:
        quiz = quizzes.look(room)
    except GlassformerError as error:
        return str(error)
    return quiz.form, quiz.open


def _answer(room: str, person: str) -> None:
    """Counts what a phone has sent: {form, answers}."""
    sent = widgets.picked(TEST, "answered")
    if not isinstance(sent, Mapping):
        return
    try:
        session.quizzes().answer(room, person, sent.get("form"), sent.get("answers"))
    except GlassformerError as error:
        st.toast(str(error), icon=":material/info:")


def _seen(rooms: Rooms, room: str | None) -> object:
    """Returns the state that a phone shows of a room: answers are counted where the question is closed."""
    try:
        asked = rooms.look(room)
    except GlassformerError as error:
        return str(error)
    return (asked.number, asked.open, () if asked.open else asked.counts)


def _choose(question: Question, person: str, answer: object) -> None:
    try:
        session.rooms().choose(question.room, person, question.number, answer)
    except GlassformerError as error:
        st.toast(str(error), icon=":material/info:")


def _choose_letter(question: Question, person: str) -> None:
    _choose(question, person, widgets.picked(LETTERS, "chosen"))


def _said(question: Question, chosen: int | None) -> str:
    if not question.open:
        answered = sum(question.counts)
        return TEXT("closed by one" if answered == 1 else "closed", answered=answered)
    if chosen is None:
        return TEXT["next" if question.letters else "choose"]
    answer = question.answers[chosen]
    return TEXT("chosen", answer=show_characters(answer) if question.letters else answer)
