"""The view "RoPE" of five parts: arrows, the score by distance, turns within the context, the two layouts,
and two letters where waves are added instead.
"""

from __future__ import annotations

from pages.input.positions import arrows, distance, layouts, rope_vs_sinusoidal, turns
from ui import content
from ui.model_needs import ROTATES
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "rope",
    TEXT,
    takes=(ROTATES,),
    best=("shakespeare-modern",),
    parts=Parts(
        "rope_topic", (arrows.PART, distance.PART, turns.PART, layouts.PART, rope_vs_sinusoidal.PART)
    ),
)
