"""The frame of a page that looks into a model: the bar, the choice of a view, the view, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from ui import explain
from ui.subject import FIRST_TEXT, Subject, subject_bar


@st.fragment  # a control draws this much again, and not the router and the sidebar as well
def look_inside(
    views: Mapping[str, Callable[[Subject], object]], words: Mapping[str, Mapping[str, str]], code: Mapping[str, Sequence[Any]], *, key: str,
    text: str = FIRST_TEXT,
) -> None:
    """Draws the chosen one of `views`, with its `words` (see, why, attempt) and the source of its `code`. The choice is in the URL under `key`.

    The words come after the scrubber, which may ask for the next step as soon as the pictures have been sent.
    """
    with subject_bar(text) as subject:
        view = explain.choose_view(views, key)
        views[view](subject)
    explain.reading(**words[view])
    explain.show_code(*code[view])
