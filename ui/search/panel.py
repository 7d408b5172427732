"""Search in the browser: mounted once for the whole app, opened by its button or by key /."""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from ui import controls, site, visited, widgets
from ui.players.component import mounted

KEY = "search"


def draw_search() -> None:
    """Draws the panel; the entry that was chosen in it is gone to."""
    with st.container(key="search_box"):
        result = mounted("search", styles=("search",))(
            key=KEY, data={"visited": visited.last()}, on_opened_change=lambda: None
        )
    address = getattr(result, "opened", None)
    if isinstance(address, str) and _offered(address):
        open_address(address)


def _offered(address: str) -> bool:
    """True for an address that the panel lists. A browser may send any other, which would set any key of the
    session.
    """
    from ui.search.entries import addresses  # a server's first page does without

    return address in (row["address"] for row in visited.last()) or address in addresses()


def open_address(address: str) -> None:
    """Goes to an address below the app's root, with the visitor's model and text. On the same page all else
    stays as it is, as when the view is chosen by its button. A preset brings its settings.
    """
    page, _, written = address.partition("?")
    entry, query = site.entry_of(page), dict(parse_qsl(written))
    if entry is not None and page == widgets.page_drawn():
        for name, value in query.items():
            widgets.put(name, value)
        controls.fill_in(query.get("preset"))
    elif entry is not None:
        st.switch_page(entry.path, query_params=query)
