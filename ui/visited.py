"""The last views that a visitor looked at, for the session."""

from __future__ import annotations

import streamlit as st

VIEW = "View"  # what the search calls one
MOST = 7  # the view that is looked at, and six before it
_VISITED = "visited"


def note(address: str, title: str, detail: str, first: str) -> None:
    """Puts a view first in the list. `first` is the view with which its page opens where the address names
    none.
    """
    row = {"kind": VIEW, "title": title, "detail": detail, "address": address, "first": first}
    rows = [row, *(other for other in last() if other["address"] != address)]
    st.session_state[_VISITED] = rows[:MOST]


def last() -> list[dict[str, str]]:
    """Returns the views visited, newest first, as the search panel shows them."""
    return list(st.session_state.get(_VISITED, ()))
