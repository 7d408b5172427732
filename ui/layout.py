"""Layout of a figure on a narrow screen, and links to other pages."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from ui import site


def scrolled(key: str, width: int) -> None:
    """Figures in the container `key` are at least `width` pixels wide; where the page is narrower they scroll
    sideways.
    """
    st.html(
        f"<style>.st-key-{key} {{ overflow-x: auto; }} .st-key-{key} .gf-plot {{ min-width: {int(width)}px;"
        " }</style>"
    )


def wide_table(key: str, width: int) -> None:
    """Tables in the container `key` are at least `width` pixels wide, and no word in them is broken."""
    table = f".st-key-{key}"
    st.html(
        f"<style>{table} table {{ min-width: {int(width)}px; }}"
        f" {table} th, {table} th * {{ overflow-wrap: normal; word-break: normal; }}</style>"
    )


def fewer_labels_on_phones(count: int) -> None:
    """Thins a figure's labels on a narrow screen, which has no room for one above every column: there, every
    third, fourth ... is shown.
    """
    step = -(-min(count, 64) * 11 // 230)
    if step > 1:
        st.html(
            "<style>@media (max-width: 640px) { .gf-plot .xaxislayer-above"
            f" .xtick:not(:nth-child({step}n+1)) {{ display: none; }} }}</style>"
        )


def link_to(url: str, label: str, **query: str) -> None:
    """Draws a link to the page with that address; nothing where a page runs alone, without app.py."""
    entry = site.entry_of(url)
    if entry is not None:
        with suppress(StreamlitPageNotFoundError):
            st.page_link(entry.path, label=label, icon=entry.icon, query_params=query)
