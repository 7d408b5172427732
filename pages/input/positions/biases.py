"""The view "Biases" of two parts: ALiBi and T5."""

from __future__ import annotations

from pages.input.positions import alibi, t5
from ui import content
from ui.view_parts import view_of_parts

TEXT = content.beside(__file__)

VIEW = view_of_parts("biases", TEXT.title, "bias_scheme", {"alibi": alibi.PART, "t5": t5.PART})
