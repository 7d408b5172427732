"""The words around a figure: what it means, how a number comes about, and the code that made it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from ui import frames, widgets
from ui.text.glossary import linked

MEASURE, HAND, WORDS, CODE = "measure", "hand", "words", "code"
FOLDS = (MEASURE, HAND, WORDS, CODE)
OPEN = "true"  # in the address, of an open fold
TITLES = "What you see", "Why it matters", "What to try", "If your textbook says otherwise"
VIEW_DRAWN = "view_drawn"  # the name of the view whose folds are open, in the session


def answer(sentence: str) -> None:
    """Draws the one sentence that answers the view's question, computed from what is shown (Markdown)."""
    if frames.take_answer(linked(sentence)):
        return
    with st.container(key="answer"):
        st.markdown(linked(sentence))


def unfolded() -> bool:
    """True if a fold of numbers is open: they differ from step to step."""
    return any(st.session_state.get(key) for key in (MEASURE, HAND))


def hand_open() -> bool:
    """True if the fold of a view's arithmetic is open, before it is drawn."""
    return widgets.settle(HAND, lambda texts: OPEN in texts, False)


def takeaway(text: str) -> None:
    """Draws one or two sentences to take home (Markdown)."""
    with st.container(border=True):
        st.markdown(linked(text))


def measure_it(draw: Callable[..., object], *about: Any) -> None:
    """Draws the fold of a view's further figures and tables. `draw(*about)` draws them, and runs only while
    it is open; the URL says whether it is.
    """
    _fold("Measure it", MEASURE, draw, *about)


def by_hand(draw: Callable[..., object], *about: Any) -> None:
    """Draws the fold of a view's arithmetic."""
    _fold("By hand", HAND, draw, *about)


def reading(see: str, why: str, attempt: str, texts: str = "") -> None:
    """Draws the fold of the three things each view says about its figure: what you see, why it matters, what
    to try (Markdown); below them, what a text states otherwise.
    """
    _fold("Explanation", WORDS, _three, see, why, attempt, texts)


def new_view(name: str) -> None:
    """Folds what another view had open; what a link, or going back, opens stays."""
    before = st.session_state.get(VIEW_DRAWN)
    st.session_state[VIEW_DRAWN] = name
    if widgets.just_arrived() or widgets.went_back():
        for key in FOLDS:
            st.session_state.pop(key, None)
    elif before not in (None, name):
        st.session_state.update(dict.fromkeys(FOLDS, False))


def _fold(label: str, key: str, draw: Callable[..., object], *about: Any) -> None:
    """Draws a fold. It has one key on all pages, and so writes its own parameter into the address: Streamlit
    drops one that it has bound when another page with the same key is opened by a link.
    """
    widgets.settle(key, lambda texts: OPEN in texts, False)
    box = st.expander(label, key=key, on_change="rerun")
    if box.open:
        with box:
            draw(*about)
    widgets.note(key, [OPEN] if box.open else [])


def _three(see: str, why: str, attempt: str, texts: str) -> None:
    for column, title, text in zip(st.columns(3), TITLES[:3], (see, why, attempt), strict=True):
        column.markdown(linked(f"**{title}**\n\n{text}"))
    if texts:
        st.markdown(linked(f"**{TITLES[3]}.** {texts}"))


def worked(label: str, value: str, formula: str) -> None:
    """Draws a number with the arithmetic that leads to it: `formula` is Markdown or LaTeX in $...$. Cards
    side by side are of one height.
    """
    with st.container(border=True, height="stretch"):
        st.metric(label, value)
        st.caption(linked(formula))


def show_code(*objects: Callable[..., Any] | type) -> None:
    """Draws the source of the functions or classes that made what is on screen, as it ran. It is sent when
    somebody opens it: a browser takes as long over a page of code as over a figure, at every step of the
    scrubber.
    """
    _fold("Show the code", CODE, _listing, *objects)


def _listing(*objects: Callable[..., Any] | type) -> None:
    for name, source in (_source(item) for item in objects):
        st.caption(f"`{name}`")
        st.code(source, language="python")


@cache
def _source(item: Callable[..., Any] | type) -> tuple[str, str]:
    """(full name, source). Read once: looking it up takes longer than drawing it."""
    return f"{inspect.getmodule(item).__name__}.{item.__qualname__}", inspect.getsource(item)  # type: ignore[union-attr]
