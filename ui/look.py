"""The frame of a page that looks into a model: the bar, the choice of a view, the view, and what is said
about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from ui import explain
from ui.subject import FIRST_TEXT, Choice, Subject, choose_subject, subject_of

Views = Mapping[str, Callable[[Subject], object]]
Words = Mapping[str, Mapping[str, str]]
Code = Mapping[str, Sequence[Any]]


def look_inside(
    views: Views,
    words: Words | None = None,
    code: Code | None = None,
    *,
    key: str | None,
    text: str = FIRST_TEXT,
) -> None:
    """Draws the bar and the chosen one of `views`, with its `words` (see, why, attempt) and the source of its
    `code`.

    The choice is in the URL under `key`; without a key there is none, and the first view is drawn. `text` is
    what is read at first.
    """
    _look(choose_subject(text), views, words or {}, code or {}, key)


# the scrubber and the controls of a view draw this much again, and not the bar, the sidebar and the router as
# well
@st.fragment
def _look(choice: Choice, views: Views, words: Words, code: Code, key: str | None) -> None:
    with subject_of(choice) as subject:
        view = explain.choose_view(views, key) if key is not None else next(iter(views))
        views[view](subject)
    # After the scrubber, which may ask for the next step as soon as the pictures have been sent.
    if view in words:
        explain.reading(**words[view])
    if view in code:
        explain.show_code(*code[view])
