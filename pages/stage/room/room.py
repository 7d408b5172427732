"""The page where phones answer what a lecturer asks: one question, its answers to choose from."""

from __future__ import annotations

from functools import partial

import streamlit as st

from engine.errors import GlassformerError
from runs.rooms import Question, Rooms
from ui import content, live, session, widgets
from ui.players.component import mounted
from ui.text.markdown import safe
from ui.text.tokens import show_characters

TEXT = content.beside(__file__)
POLL_SECONDS = 2.0
CHOSEN, LETTERS = "room_answer", "room_letters"


def draw() -> None:
    with st.container(key="room_page"):
        st.title(TEXT.title, anchor=False)
        _question()


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
