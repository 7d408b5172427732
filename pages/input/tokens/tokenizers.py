"""The view "Tokenizers": one text, cut in many ways; as ids, and back."""

from __future__ import annotations

from pages.input.tokens import ids_and_back, tokens
from ui import content
from ui.view_parts import view_of_parts

TEXT = content.beside(__file__)

VIEW = view_of_parts("compare", TEXT.title, "compare_part", {"tokens": tokens.PART, "ids": ids_and_back.PART})
