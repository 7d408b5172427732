"""The view "Scores": what divides the scores, and what Q and K are for. It needs no model."""

from __future__ import annotations

from pages.inside.attention import queries_and_keys, scaling
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "scores",
    TEXT,
    needs_model=False,
    parts=Parts("attention_scores", (scaling.PART, queries_and_keys.PART), label=TEXT["part"]),
)
