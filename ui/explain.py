"""The words around a figure: what it means, how a number comes about, and the code that made it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st


def takeaway(text: str) -> None:
    """One sentence or two to go home with (Markdown)."""
    with st.container(border=True):
        st.markdown(text)


def reading(see: str, why: str, attempt: str) -> None:
    """The three things each page says about its figure: what you see, why it matters, what to try
    (Markdown).
    """
    for column, title, text in zip(
        st.columns(3), ("What you see", "Why it matters", "What to try"), (see, why, attempt), strict=True
    ):
        column.markdown(f"**{title}**\n\n{text}")


def worked(label: str, value: str, formula: str) -> None:
    """A number with the arithmetic that leads to it: `formula` is Markdown or LaTeX in $...$. Cards side by
    side are of one height.
    """
    with st.container(border=True, height="stretch"):
        st.metric(label, value)
        st.caption(formula)


def show_code(*objects: Callable[..., Any] | type, label: str = "Show the code") -> None:
    """The source of the functions or classes that made what is on screen, as it ran. It is sent when somebody
    opens it: a browser takes as long over a page of code as over a figure, at every step of the scrubber.
    """
    sources = [_source(item) for item in objects]
    box = st.expander(label, key=f"code_{label}_{sources[0][0]}", on_change="rerun")
    if box.open:
        with box:
            for name, source in sources:
                st.caption(f"`{name}`")
                st.code(source, language="python")


@cache
def _source(item: Callable[..., Any] | type) -> tuple[str, str]:
    """(full name, source). Read once: looking it up takes longer than drawing it."""
    return f"{inspect.getmodule(item).__name__}.{item.__qualname__}", inspect.getsource(item)  # type: ignore[union-attr]
