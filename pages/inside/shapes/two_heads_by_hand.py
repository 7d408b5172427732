"""The view "Two heads by hand": attention on numbers of one's own. It needs no model."""

from __future__ import annotations

from pages.inside.shapes import masking, two_heads
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "hand",
    TEXT,
    needs_model=False,
    parts=Parts("shapes_example", (two_heads.PART, masking.PART), label=TEXT["example"]),
)
