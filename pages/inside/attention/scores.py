"""The view "Scores": what divides the scores, and what Q and K are for. It needs no model."""

from __future__ import annotations

from pages.inside.attention import queries_and_keys, scaling
from ui import content
from ui.view_parts import view_of_parts

TEXT = content.beside(__file__)

VIEW = view_of_parts(
    "scores",
    TEXT.title,
    "attention_scores",
    {"scaling": scaling.PART, "self": queries_and_keys.PART},
    label=TEXT["part"],
)
