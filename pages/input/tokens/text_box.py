"""The text that the views of Tokens read: examples and a box, in the link where it is short."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import streamlit as st

from pages.input.tokens.examples import EXAMPLES
from studies.tokens.published import whole_characters
from ui import content, session, widgets

TEXT = content.beside(__file__)
COMPARED = "compare_text"
LINK = 6000  # characters of an address that a text may take; a longer one stays out of it


def compared_text() -> str | None:
    """Draws the text that tokenizers cut or learn from; None, with a sentence, where it is too long."""
    return text_box(EXAMPLES, COMPARED)


def text_box(examples: Mapping[str, str], key: str) -> str | None:
    """Draws the examples, name -> text, and, folded, the box: the first example until there is another text.
    Returns it in whole characters, or None, with a sentence, where it is too long. A link holds it under
    `key`.
    """
    first = next(iter(examples.values()))
    # What somebody wrote stays where an address says nothing of it, in a course as well.
    before = st.session_state.get(key, first)
    settled = widgets.settle(key, lambda texts: texts[-1][: 2 * LINK] or None, before)
    held, halves = whole_characters(str(settled))
    if held != st.session_state[key]:  # half a character cannot be sent to the browser
        st.session_state[key] = held
    # Streamlit's own: a button that puts a text into the box; the box has the value, and is in the link.
    st.pills(
        TEXT["examples"],
        list(examples),
        key=f"{key}_example",
        label_visibility="collapsed",
        wrap=True,
        on_change=_take,
        args=(key, examples),
    )
    limit = session.profile().max_watched
    with st.popover(TEXT["yours"], icon=":material/edit:"):
        hint = TEXT("box hint", limit=limit, longer=content.Filled(widgets.MUCH_LONGER))
        typed = widgets.box(TEXT["yours"], limit, key, height=150, width=420, help=hint)
        text, more = whole_characters(typed)
        fits = len(quote(text)) <= LINK
        widgets.note(key, [] if text == first or not fits else [text])
        if not fits:
            st.caption(TEXT["not linked"])
    if len(text) > limit:
        st.error(TEXT("too long", characters=len(text), limit=limit, over=len(text) - limit))
        return None
    if halves + more:
        st.caption(TEXT("half characters", count=halves + more))
    return text


def _take(key: str, examples: Mapping[str, str]) -> None:
    chosen = str(st.session_state.get(f"{key}_example"))
    if chosen in examples:
        st.session_state[key] = examples[chosen]
        st.session_state[f"{key}_example"] = None
