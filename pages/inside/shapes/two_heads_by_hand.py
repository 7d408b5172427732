"""The view "Two heads by hand": attention on numbers of one's own. It needs no model."""

from __future__ import annotations

from pages.inside.shapes import masking, two_heads
from ui import content
from ui.view_parts import view_of_parts

TEXT = content.beside(__file__)

VIEW = view_of_parts(
    "hand",
    TEXT.title,
    "shapes_example",
    {"heads": two_heads.PART, "mask": masking.PART},
    label=TEXT["example"],
)
