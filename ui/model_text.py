"""The text that the model of the bar reads: its box, what a link says, and what was read before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import streamlit as st

from ui import widgets
from ui.fields import visible
from ui.fit_text import MAX_TEXT, examples_of
from ui.text.markdown import safe

TEXT, LENGTH = "text", "text_length"  # in the session: the box, and the letters of a text before it was cut


@dataclass(frozen=True)
class LastText:
    """The text as the box had it last: it is not on every page. `kind` is what its model reads, `first` the
    text for it that nobody typed; `page` drew the box, and `written` is what the address then said.
    """

    KEY: ClassVar[str] = "kept_text"

    text: str
    kind: str = "letters"
    first: str = ""
    page: str = ""
    written: str | None = None

    @classmethod
    def get(cls) -> LastText | None:
        """Returns the session's; None where no box was drawn yet."""
        kept: LastText | None = st.session_state.get(cls.KEY)
        return kept

    @property
    def untyped(self) -> set[str]:
        """The texts that nobody needs to type: the box offers them."""
        return {*examples_of(self.kind).values(), self.first}


def first_of(kind: str) -> str:
    """Returns the text that such a model reads before anybody has typed one."""
    return next(iter(examples_of(kind).values()))


def settled_text(first: str, kind: str) -> str:
    """Returns the text of the box before it is drawn: the address's, else the last one read, else `first`. A
    text that was not typed follows the kind of model.
    """
    page, named = widgets.page_drawn(), st.query_params.get(TEXT)
    kept, typed = LastText.get(), st.session_state.get(TEXT)
    # The value of a box of another page is none of this page's, and a box that was away has none.
    arrived = kept is None or kept.page != page or typed is None
    written = kept.written if kept is not None else None
    linked = named != written
    carried: str | None = kept.text if kept is not None and arrived else typed
    if named is not None and (arrived or linked):
        text = named
    elif carried is None or (linked and not arrived):
        text = first  # nothing is carried, or an address without a text came back
    elif kept is not None and kept.kind != kind and carried in kept.untyped:
        text = first
    else:
        text = carried
    if text != carried:  # what was cut is away
        st.session_state[LENGTH] = 0
    text = visible(text)
    st.session_state[LastText.KEY] = LastText(text, kind, first, page, written)
    # In each run: a popover mounts its boxes when it first opens, and the browser knows no earlier value.
    st.session_state[TEXT] = text
    return text


def choose_text(kind: str) -> tuple[str, int]:
    """Draws the box; returns its text, and how many letters that had before it was cut."""
    hint = "What the model reads. Press Ctrl+Enter to apply."
    # Streamlit's own: the box lies in a closed popover, from where Streamlit writes nothing into the address.
    # No `max_chars`: with it a browser drops a longer paste without a word.
    typed = st.text_area("Text", key=TEXT, height=90, help=hint, on_change=_cut_text) or ""
    length = max(len(typed), st.session_state.get(LENGTH, 0))
    if length > MAX_TEXT:
        st.caption(f":material/info: That text has {length:,} characters; the first {MAX_TEXT:,} are used.")
    # Streamlit's own: a button that puts a text into the box; the box has the value, and is in the link.
    st.pills(
        "Examples",
        list(examples_of(kind)),
        format_func=safe,
        key="text_example",
        on_change=_take_example,
        args=(kind,),
        label_visibility="collapsed",
        wrap=True,
    )
    text, kept = visible(typed)[:MAX_TEXT], st.session_state[LastText.KEY]
    written = None if typed == kept.first else text
    widgets.write_url(TEXT, written)
    st.session_state[LastText.KEY] = replace(kept, text=typed, written=written)
    return text, length


def _cut_text() -> None:
    """A long text would not fit into a link."""
    typed = st.session_state[TEXT] or ""
    st.session_state[LENGTH] = len(typed)
    st.session_state[TEXT] = typed[:MAX_TEXT]


def _take_example(kind: str) -> None:
    chosen = st.session_state.get("text_example")
    texts = examples_of(kind)
    if chosen in texts:
        st.session_state[TEXT] = texts[chosen]
        st.session_state[LENGTH] = 0
        st.session_state["text_example"] = None
