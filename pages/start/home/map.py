"""A map on screen. Its boxes and arrows come from `map_drawing`; the browser only draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.start.home.map_pair import pair_map
from studies.costs.ledger import Ledger
from ui import site, widgets
from ui.figures.theme import PART_COLOURS
from ui.players.component import mounted


def draw_stacks(
    counted: Ledger,
    *,
    key: str,
    alt: str,
    live: Mapping[str, tuple[str, ...]] | None = None,
    query: Mapping[str, str] | None = None,
) -> None:
    """Draws the two stacks of a ledger; a part whose page is asked for is gone to, with that in its address.
    `live` says what runs through the boxes.
    """
    pages = site.explanations()
    part = opened(pair_map(counted, pages, live), key, alt)
    if (path := pages.get(part.rpartition(".")[2])) is not None:
        st.switch_page(path, query_params=dict(query or {}))


def opened(drawn: dict[str, Any], key: str, alt: str) -> str:
    """Draws a map; every part can be pointed at, focused and read. Returns the id of a part whose page was
    asked for, once; else nothing.
    """
    data = {"map": drawn, "palette": PART_COLOURS, "alt": alt, "part": widgets.read_url("part") or None}
    result = mounted("map", isolated=True)(key=key, data=data, on_opened_change=lambda: None)
    part = getattr(result, "opened", None)
    return part if isinstance(part, str) else ""
