"""The view "KV cache": the same text written with and without it, what the cache takes, and why it may be
kept.
"""

from __future__ import annotations

import streamlit as st

from engine.parts.cache import KVCache
from engine.sample.decoder import Decoder
from pages.output.generation import memory, smaller, step_by_step, why_exact
from studies.generation.kv_cache import cache_size, compare, flops, unchanged
from studies.generation.single_row import AttentionStep
from studies.generation.smaller_cache import few_bits, held_by_weight, hidden
from ui import content, widgets
from ui.model_bar import Subject
from ui.model_needs import KEEPS, SAYS
from ui.page_frame import View

TEXT = content.beside(__file__)
PART = "kv_part"
PARTS = {"steps": step_by_step.draw, "bytes": memory.draw, "why": why_exact.draw, "smaller": smaller.draw}
SEEN_FULL = 256  # tokens of a context that is full before the longest text here ends


def draw(subject: Subject) -> None:
    """Draws the chosen part."""
    left, right = st.columns([6, 6], gap="medium", vertical_alignment="bottom")
    titles = {part: TEXT(f"part {part}") for part in PARTS}
    PARTS[widgets.select(TEXT["part"], titles, PART, container=left, hidden=True)](subject, right)


def _variant(subject: Subject) -> str:
    """The part with a question of its own; else how long a context is: nobody fills thousands here."""
    if widgets.settled(PARTS, PART) == "smaller":
        return "smaller"
    return "" if subject.config.context <= SEEN_FULL else "long"


VIEW = View(
    "cache",
    TEXT,
    draw,
    (
        KVCache,
        Decoder,
        AttentionStep,
        compare,
        flops,
        cache_size,
        unchanged,
        few_bits,
        hidden,
        held_by_weight,
    ),
    takes=(SAYS, KEEPS),
    variant=_variant,
    variants={"smaller": ((PART, "smaller"),)},
    figures_only=True,
)
