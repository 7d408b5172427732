"""The view "Token by token": a text is written while one watches, and each of its tokens can be chosen
otherwise.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.config import SampleConfig
from pages.output.generation.link import again, left_out, link
from pages.output.generation.message import message
from pages.output.generation.records import Limits, Session
from pages.output.generation.rounding import draw_rounding
from pages.output.generation.session import answer, begin, resting
from pages.output.generation.settings import conversation, row, settings
from pages.output.generation.surprise import draw_surprise
from ui import widgets
from ui.figures import theme
from ui.model_bar import Subject
from ui.players.component import mounted

KEY, SESSIONS = "writer", "generation_sessions"
# It plays what it has while the server writes on: it is never out of date.
STYLE = (
    '<style>.st-key-generation_writer, .st-key-generation_writer [data-stale="true"] { opacity: 1 !important;'
    " transition: none !important; }</style>"
)
KEPT = 4  # sessions of one visitor: with the settings put back, an earlier tree is there again
TREE_LINK, AT_LINK = "generation_tree", "generation_at"


def draw_tokens(subject: Subject) -> None:
    """Settings, the writer, and how surprising the text was."""
    columns = row(subject)
    speaking, ends, about = conversation(subject, columns[-1])
    sampling, limits = settings(speaking, ends, columns)
    if about:
        st.caption(about)
    if draw_rounding(speaking, limits.arithmetic):
        _write(speaking, sampling, limits)


@st.fragment
def _write(subject: Subject, sampling: SampleConfig, limits: Limits) -> None:
    """Runs again, and nothing else of the page, at each thing that the browser asks for: a batch of tokens, a
    pick, a branch less.
    """
    session = _session(subject, sampling, limits)
    ask = _asked()
    answer(session, ask, subject, sampling, limits)
    note = _keep_link(session)
    st.html(STYLE)
    with st.container(key="generation_writer"):
        mounted("writer", stepper=True)(
            key=KEY,
            data=message(session, ask, subject, limits) | {"palette": theme.palette()},
            on_ask_change=lambda: None,
        )
    if note:
        st.caption(f":material/info: {note}")
    if not session.todo:
        path, shown = resting(session, limits, ask.get("do") == "more")
        draw_surprise(subject, path, shown)


def _asked() -> Mapping[str, Any]:
    ask = widgets.picked(KEY, "ask")
    return ask if isinstance(ask, Mapping) else {}


def _session(subject: Subject, sampling: SampleConfig, limits: Limits) -> Session:
    """The tree of this model, text and settings: as it was left, else of the link, else a new one. Another
    step of a training writes the same branches.
    """
    family, name = (
        hashlib.sha256(repr((key, subject.ids, sampling, limits.arithmetic)).encode()).hexdigest()[:16]
        for key in (subject.key[0], subject.key)
    )
    first = SESSIONS not in st.session_state
    sessions: OrderedDict[str, Session] = st.session_state.setdefault(SESSIONS, OrderedDict())
    before = sessions.get(family)
    empty = (
        before is not None and not before.tree.nodes and not before.todo and limits.length > 0
    )  # none were asked for before
    if before is None or before.name.partition(".")[0] != name or empty:
        linked = (widgets.read_url(TREE_LINK), widgets.read_url(AT_LINK)) if first else ("", "")
        session_name = (  # a tree written again numbers its tokens anew: the browser must not mix them
            f"{name}.{secrets.token_hex(4)}"
        )
        sessions[family] = begin(
            session_name, subject, sampling, limits, *(linked if before is None else again(before))
        )
    sessions.move_to_end(family)
    while len(sessions) > KEPT:
        sessions.popitem(last=False)
    return sessions[family]


def _keep_link(session: Session) -> str:
    """Puts the tree into the link. Returns a sentence about what does not fit."""
    if session.todo:
        return ""
    branches, position, out = link(session)
    plain = "-" not in branches and "_" not in branches and session.at == 0
    for name, value in ((TREE_LINK, branches), (AT_LINK, position)):
        widgets.keep_in_url(name, None if plain or not value else value)
    return left_out(out)
