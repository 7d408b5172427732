"""The frame of a page: its title, the bar, the choice of a view, the view, and what is said about it.

show(Page("Attention: who looks at whom", "attention_view", (
    View("heads", "Heads", draw_heads, Words(see=..., why=..., attempt=...), (pattern, entropy)),
    ...
)))
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import streamlit as st

from engine.errors import HeadError
from ui import explain, state, widgets
from ui.models import FIRST_MODEL
from ui.reading import FIRST_TEXT
from ui.subject import Choice, choose_subject, subject_of

log = logging.getLogger(__name__)
Code = tuple[Callable[..., Any] | type, ...]


@dataclass(frozen=True)
class Words:
    """The three things that a view says about its figure: what you see, why it matters, what to try
    (Markdown).
    """

    see: str
    why: str
    attempt: str


@dataclass(frozen=True)
class View:
    """One answer of a page. `id` stands in the URL, `title` on the button.

    `draw` is called with the `Subject` of the bar where the view `needs_model`, else with nothing. A view
    with its `own_text` has the model read what it says itself: the bar then has no box for a text. `code` are
    the functions and classes of the engine whose source is offered below it. Words and code that depend on
    what is shown are functions of what `draw` gets.
    """

    id: str
    title: str
    draw: Callable[..., object]
    words: Words | Callable[..., Words | None] | None = None
    code: Code | Callable[..., Code] = ()
    needs_model: bool = True
    own_text: bool = False

    def tell(self, *about: Any) -> None:
        """Draws the words and the code: below the view, after the scrubber."""
        words = self.words(*about) if callable(self.words) else self.words
        code = self.code(*about) if callable(self.code) else self.code
        if words is not None:
            explain.reading(words.see, words.why, words.attempt)
        if code:
            explain.show_code(*code)


@dataclass(frozen=True)
class Page:
    """What stands on a page. `key` names the view in the URL; `model` is looked into and `text` read until
    there are others. `bar` is drawn above the views of a page that looks into no model: what it returns, they
    get.
    """

    title: str
    key: str
    views: tuple[View, ...]
    sentence: str = ""
    text: str = FIRST_TEXT
    model: str = FIRST_MODEL
    bar: Callable[[], object] | None = None


def show(page: Page) -> None:
    """Draws the page. Where all views have the same bar, it comes first and stays while views change."""
    st.title(page.title)
    if page.sentence:
        st.markdown(page.sentence)
    state.drop_endless()
    if all(view.needs_model and not view.own_text for view in page.views):
        with boundary():
            _chosen(page, page.views, choose_subject(page.text, page.model))
    elif any(view.needs_model for view in page.views):
        view = _one_of(page, page.views)
        with boundary():
            asks = not view.own_text
            choice = choose_subject(page.text, page.model, asks) if view.needs_model else None
            _chosen(page, (view,), choice)
    else:
        _chosen(page, page.views, None)


def choose_view(views: Sequence[View], key: str) -> View:
    """The views as a row of buttons. A link names one by its id, or, as old links do, by its title."""
    by_id = {view.id: view for view in views}
    titles = {view.id: view.title for view in views}
    return by_id[widgets.one_of("View", titles, key, hidden=True, wrap=True)]


# the scrubber and the controls of a view draw this much again, not the bar, the sidebar and the router
@st.fragment
def _chosen(page: Page, views: tuple[View, ...], choice: Choice | None) -> None:
    if choice is None:
        with boundary():
            about = () if page.bar is None else (page.bar(),)
            view = _one_of(page, views)
            with boundary():
                view.draw(*about)
            with boundary():
                view.tell(*about)
        return
    with boundary():
        with subject_of(choice) as subject:
            view = _one_of(page, views)
            with boundary():
                view.draw(subject)
        # After the scrubber, which may ask for the next step as soon as the pictures have been sent.
        view.tell(subject)


def _one_of(page: Page, views: tuple[View, ...]) -> View:
    return choose_view(views, page.key) if len(views) > 1 else views[0]


@contextmanager
def boundary() -> Iterator[None]:
    """What fails in here becomes a sentence with a number; the rest of the page lives, and the log has
    the trace.
    """
    try:
        yield
    except HeadError as error:  # an encoder that others trained, say: no fault of anybody
        said = str(error)
        st.info(f"{said[0].upper()}{said[1:]}. Other views show more of it.", icon=":material/info:")
    except Exception as error:  # Streamlit's own signals to stop or run again are no Exceptions
        failed(error)


def failed(error: Exception) -> None:
    """Tells the person that a part of the page could not be drawn, and the log why, under the same number."""
    number = secrets.token_hex(4)
    log.error("%s: a part of a page could not be drawn", number, exc_info=error)
    st.error(
        "This could not be drawn: the fault is ours, not yours. Another view, model or setting may still"
        f" work. Whoever runs this server finds the reason in its log under **{number}**.",
        icon=":material/error:",
    )
