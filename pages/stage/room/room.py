"""The page where phones answer what a lecturer asks: one question, its answers to choose from."""

from __future__ import annotations

import streamlit as st

from engine.errors import GlassformerError
from runs.rooms import Question, Rooms
from ui import content, live, session, widgets
from ui.text.markdown import safe

TEXT = content.beside(__file__)
POLL_SECONDS = 2.0
CHOSEN = "room_answer"


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
    st.header(safe(asked.text), anchor=False)
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
    if asked.open and asked.before:
        st.caption(TEXT["second vote"])
    st.caption(_said(asked, chosen))


def _seen(rooms: Rooms, room: str | None) -> object:
    """Returns the state that a phone shows of a room: answers are counted where the question is closed."""
    try:
        asked = rooms.look(room)
    except GlassformerError as error:
        return str(error)
    return (asked.number, asked.open, () if asked.open else asked.counts)


def _choose(question: Question, person: str, answer: int) -> None:
    try:
        session.rooms().choose(question.room, person, question.number, answer)
    except GlassformerError as error:
        st.toast(str(error), icon=":material/info:")


def _said(question: Question, chosen: int | None) -> str:
    if not question.open:
        answered = sum(question.counts)
        return TEXT("closed by one" if answered == 1 else "closed", answered=answered)
    if chosen is None:
        return TEXT["choose"]
    return TEXT("chosen", answer=question.answers[chosen])
