"""The glossary in the browser: what a dotted term means, said where it stands, and the sidebar's buttons. Its
script also follows the strip of the map (`ui.map_strip`), so that neither loads the app anew.
"""

from __future__ import annotations

from functools import cache
from urllib.parse import urlencode

import streamlit as st

from ui import site
from ui.players.component import mounted
from ui.text.glossary import Term, terms

KEY = "terms"


def draw_terms() -> None:
    """Draws the buttons, once for the whole app; a page that is asked for in there is gone to. The browser
    fetches the terms themselves (`ui.search.route`): with each answer they would be packed anew.
    """
    result = mounted("terms", styles=("terms",))(
        key=KEY, data={}, on_opened_change=lambda: None, on_part_change=lambda: None
    )
    opened = getattr(result, "opened", None)
    if isinstance(opened, str) and opened in terms():
        term = terms()[opened]
        st.switch_page(_entry(term).path, query_params=dict(term.query))
    part = getattr(result, "part", None)
    if isinstance(part, str):
        st.switch_page(site.HOME, query_params={"part": part})


@cache
def rows() -> list[dict[str, str]]:
    """Returns each term as the browser needs it."""
    return [
        {
            "id": term.id,
            "title": term.title,
            "text": term.text,
            "page": _entry(term).title,
            # from the root of the app, wherever a host has put that: pages lie one level below it
            "href": f"./{term.page}" + (f"?{urlencode(term.query)}" if term.query else ""),
        }
        for term in terms().values()
    ]


def _entry(term: Term) -> site.Entry:
    return next(entry for entry in site.ENTRIES if entry.url == term.page)
