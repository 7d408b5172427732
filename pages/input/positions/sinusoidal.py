"""The view "Sinusoidal" of four parts: the table, the many-handed clock, similarity and rotation."""

from __future__ import annotations

from pages.input.positions import clock, rotation, similarity, table
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "sinusoidal",
    TEXT,
    needs_model=False,
    parts=Parts("sinusoid_part", (table.PART, clock.PART, similarity.PART, rotation.PART)),
)
