"""The view "Tokenizers": one text, cut in many ways; as ids, and back."""

from __future__ import annotations

from pages.input.tokens import ids_and_back, tokens
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "compare",
    TEXT,
    needs_model=False,
    parts=Parts("compare_part", (tokens.PART, ids_and_back.PART)),
    shows=("unbelievably", "merges of a word"),
)
