"""The view "RoPE" of five parts: arrows, the score by distance, turns within the context, the two layouts,
and two letters where waves are added instead.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.measure.positions.rope import rotate_interleaved, score_curve
from engine.measure.positions.rope import turns as turns_of
from engine.parts.positions import Rope, rotate_half_pairs
from pages.input.positions import arrows, distance, layouts, rope_vs_sinusoidal, turns
from ui import content
from ui.model_bar import Subject
from ui.model_needs import ROTATES
from ui.page_frame import Words
from ui.view_parts import Part, view_of_parts

TEXT = content.beside(__file__)


def _part(text: content.Texts, draw: Callable[[Subject], None], *code: Callable[..., object]) -> Part:
    """Returns a part that asks and says what the view does."""
    return Part(text, draw, Words.of(TEXT), (Rope, rotate_half_pairs, *code), TEXT.question)


VIEW = view_of_parts(
    "rope",
    TEXT.title,
    "rope_topic",
    {
        "arrows": _part(arrows.TEXT, arrows.draw),
        "distance": _part(distance.TEXT, distance.draw, score_curve),
        "turns": _part(turns.TEXT, turns.draw, turns_of),
        "layouts": _part(layouts.TEXT, layouts.draw, rotate_interleaved),
        "added": rope_vs_sinusoidal.PART,
    },
    takes=(ROTATES,),
    best=("shakespeare-modern",),
)
