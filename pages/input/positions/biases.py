"""The view "Biases" of two parts: ALiBi and T5."""

from __future__ import annotations

from pages.input.positions import alibi, t5
from ui import content
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View("biases", TEXT, needs_model=False, parts=Parts("bias_scheme", (alibi.PART, t5.PART)))
