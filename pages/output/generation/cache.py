"""The view "KV cache": the same text written with and without it, what the cache takes, and why it may be
kept.
"""

from __future__ import annotations

import streamlit as st

from engine.ledger import kv_numbers
from pages.output.generation.cache_bytes import draw_bytes
from pages.output.generation.cache_steps import draw_steps
from pages.output.generation.cache_why import draw_why
from ui import widgets
from ui.model_bar import Subject

PARTS = {"steps": "Step by step", "bytes": "Bytes", "why": "Why it may be kept"}


def draw_cache(subject: Subject) -> None:
    """Draws the chosen part. A model that can keep nothing gets a sentence."""
    if not kv_numbers(subject.config):
        why = (
            "its tokens never exchange anything: there are no keys and values to keep."
            if subject.config.mixer == "none"
            else (
                "without a causal mask every later token changes the keys and values of the earlier ones."
                " Choose a causal model."
            )
        )
        st.info(f"This model has no use for a cache: {why}")
        return
    left, right = st.columns([5, 7], gap="medium", vertical_alignment="bottom")
    part = widgets.select("Part", PARTS, "kv_part", container=left, hidden=True)
    {"steps": draw_steps, "bytes": draw_bytes, "why": draw_why}[part](subject, right)
