"""The stage in the browser: mounted once for the whole app, and asleep until key p or `stage=1` wakes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import streamlit as st
from streamlit import config

from engine.errors import GlassformerError
from ui import export, session
from ui.players.component import mounted
from ui.stage.address import PhoneAddress, code, for_phones

KEY = "stage"
URL = "room"  # of the page where phones answer
_SAID = "room_said"


@st.fragment
def draw_stage() -> None:
    """Draws the stage's component. Its requests (the code of another address, the room's counts) draw it
    again, and nothing else of the page.
    """
    with st.container(key="stage_place"):
        mounted("stage", styles=("stage",))(
            key=KEY,
            data=_told() | {"saves": export.offer().token},
            on_address_change=lambda: None,
            on_room_change=_asked,
        )


def _told() -> dict[str, Any]:
    held = st.session_state.get(KEY) or {}
    address = held.get("address")
    if not isinstance(address, str):  # not on a stage
        return {"code": None, "room": None, "said": ""}
    link = _for_phones(address)
    room = _room(address)  # may leave something to say
    return {
        "code": {"address": link.address, "note": link.note, **code(link.address)},
        "room": room,
        "said": st.session_state.get(_SAID, ""),
    }


def _for_phones(address: str) -> PhoneAddress:
    """Checks an address that a browser sent, perhaps written by a stranger."""
    return for_phones(address, listens=config.get_option("server.address"), public=session.profile().public)


def _room(address: str) -> dict[str, Any] | None:
    """The question that this browser has put to the room, its counts and the way there."""
    try:
        question = session.rooms().mine(session.owner())
    except GlassformerError as error:
        st.session_state[_SAID] = str(error)
        return None
    return None if question is None or question.letters else asdict(question) | way_to(address, question.room)


def way_to(address: str, room: str, name: str = "id") -> dict[str, Any]:
    """Returns how phones come to a room, from the page at that address: {address, note, code}. `name` is what
    the address calls the room: one of a question, or of another kind.
    """
    parts = urlsplit(address)
    root = parts.path.rsplit("/", 1)[0]  # pages lie one level below the root
    way = urlunsplit(parts._replace(path=f"{root}/{URL}", query=f"{name}={room}", fragment=""))
    phone_address = _for_phones(way)
    return {
        "address": phone_address.address,
        "note": phone_address.note,
        "code": code(phone_address.address),
    }


def _asked() -> None:
    """Carries out the lecturer's command: {do: ask, again, close, end or look, text, answers}."""
    done = (st.session_state.get(KEY) or {}).get("room")
    if not isinstance(done, Mapping):
        return
    owner, do = session.owner(), done.get("do")
    st.session_state[_SAID] = ""
    try:
        if do == "ask":
            session.rooms().ask(owner, done.get("text"), done.get("answers"))
        elif do == "again":
            session.rooms().ask_again(owner)
        elif do == "close":
            session.rooms().close(owner)
        elif do == "end":
            session.rooms().end(owner)
    except GlassformerError as error:
        st.session_state[_SAID] = str(error)
