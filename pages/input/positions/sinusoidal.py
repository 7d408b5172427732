"""The view "Sinusoidal" of four parts: the table, the many-handed clock, similarity and rotation."""

from __future__ import annotations

from pages.input.positions import clock, rotation, similarity, table
from ui import content
from ui.view_parts import view_of_parts

TEXT = content.beside(__file__)

VIEW = view_of_parts(
    "sinusoidal",
    TEXT.title,
    "sinusoid_part",
    {"table": table.PART, "clock": clock.PART, "similarity": similarity.PART, "rotation": rotation.PART},
)
