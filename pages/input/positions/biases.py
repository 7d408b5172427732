"""The view "Biases": numbers added to the scores by distance, fixed ones (ALiBi) and learned ones (T5)."""

from __future__ import annotations

from engine.measure.positions.alibi import alibi_effect
from engine.parts.positions import Alibi, T5Bias, alibi_slopes, t5_bucket
from pages.input.positions import words
from pages.input.positions.alibi import draw_alibi
from pages.input.positions.t5 import draw_t5
from ui.view_parts import Part

PARTS = {
    "alibi": Part("ALiBi", draw_alibi, words.ALIBI, (Alibi, alibi_slopes, alibi_effect), words.ALIBI_ASKED),
    "t5": Part("T5", draw_t5, words.T5, (T5Bias, t5_bucket), words.T5_ASKED),
}
