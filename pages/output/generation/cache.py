"""The view "KV cache": the same text written with and without it, what the cache takes, and why it may be
kept.
"""

from __future__ import annotations

import streamlit as st

from pages.output.generation.cache_bytes import draw_bytes
from pages.output.generation.cache_steps import draw_steps
from pages.output.generation.cache_why import draw_why
from ui import widgets
from ui.model_bar import Subject

PARTS = {"steps": "Step by step", "bytes": "Memory", "why": "Why it is exact"}


def draw_cache(subject: Subject) -> None:
    """Draws the chosen part."""
    left, right = st.columns([5, 7], gap="medium", vertical_alignment="bottom")
    part = widgets.select("Part", PARTS, "kv_part", container=left, hidden=True)
    {"steps": draw_steps, "bytes": draw_bytes, "why": draw_why}[part](subject, right)
