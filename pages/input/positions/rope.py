"""The view "RoPE": arrows, the score by distance, turns within the context, the two layouts, and two letters
where waves are added instead.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.measure.positions.position_scores import entrances, position_scores
from engine.measure.positions.rope import rotate_interleaved, score_curve, turns
from engine.parts.positions import Rope, rotate_half_pairs
from pages.input.positions import words
from pages.input.positions.rope_against import draw_against
from pages.input.positions.rope_arrows import draw_arrows
from pages.input.positions.rope_distance import draw_distance
from pages.input.positions.rope_layouts import draw_layouts
from pages.input.positions.rope_turns import draw_turns
from ui.model_bar import Subject
from ui.page_frame import Code
from ui.view_parts import Part


def _part(title: str, draw: Callable[[Subject], None], *code: Callable[..., object] | type) -> Part:
    return Part(title, draw, words.ROPE, (Rope, rotate_half_pairs, *code), words.ROPE_ASKED)


AGAINST: Code = (position_scores, entrances)
PARTS = {
    "arrows": _part("Arrows", draw_arrows),
    "distance": _part("Distance", draw_distance, score_curve),
    "turns": _part("Turns", draw_turns, turns),
    "layouts": _part("Layouts", draw_layouts, rotate_interleaved),
    "added": Part(
        "RoPE vs sinusoidal", lambda _: draw_against(), words.AGAINST, AGAINST, words.AGAINST_ASKED
    ),
}
