"""The map of a Transformer on screen. Its boxes and arrows come from `pages.start.home.map_drawing`; the
browser only draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.config import ModelConfig
from engine.ledger import Ledger, ledger_of
from engine.presets import Preset
from pages.start.home import words, words_pair
from pages.start.home.map_drawing import model_map
from pages.start.home.map_pair import pair_map
from ui import memo, site, widgets
from ui.figures.theme import PART_COLOURS
from ui.players.component import mounted


def draw_map(preset: Preset) -> None:
    """Draws the map of the preset; a part whose page is asked for is gone to."""
    counted = ledger_of(preset)
    if counted.encoder is not None:
        draw_stacks(counted, key="map_towers", alt=words_pair.drawn(preset, counted))
        return
    pages = site.explanations()
    opened = transformer_map(counted.config, key="map", alt=words.alt(preset, counted), pages=pages)
    if opened:
        st.switch_page(pages[opened], query_params={})


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
    opened = _opened(pair_map(counted, pages, live), key, alt)
    if (path := pages.get(opened.rpartition(".")[2])) is not None:
        st.switch_page(path, query_params=dict(query or {}))


def transformer_map(
    config: ModelConfig, *, key: str, alt: str, pages: Mapping[str, str] | None = None
) -> str | None:
    """Draws `config`; every part can be pointed at, focused and read. `pages` maps a part to the page that
    explains it.

    Returns the id of a part whose page was asked for, once; else None.
    """
    opened = _opened(_cached_map(config, tuple(sorted((pages or {}).items()))), key, alt)
    return opened if opened in (pages or {}) else None


def _opened(drawn: dict[str, Any], key: str, alt: str) -> str:
    """Draws a map; returns the id of a part whose page was asked for, once; else nothing."""
    data = {"map": drawn, "palette": PART_COLOURS, "alt": alt, "part": widgets.read_url("part") or None}
    result = mounted("map", isolated=True)(key=key, data=data, on_opened_change=lambda: None)
    opened = getattr(result, "opened", None)
    return opened if isinstance(opened, str) else ""


@memo.measured(copied=True)
def _cached_map(config: ModelConfig, pages: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return model_map(config, dict(pages))
