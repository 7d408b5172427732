"""Circuits: famous experiments, each one click from its result."""

from engine.measure.contrast import both_runs
from engine.measure.patching import patch
from engine.measure.quantising import twin
from engine.measure.rounding import rounded
from engine.measure.steering import continued, direction
from pages.inside.circuits import words, words_weights
from pages.inside.circuits.patching import draw_patching
from pages.inside.circuits.quantisation import draw_quantisation
from pages.inside.circuits.steering import draw_steering
from ui.look import Page, View, show
from ui.models import REAL_MODEL

PATCHED = (patch, both_runs)

show(
    Page(
        "Circuits: which parts do the work",
        "circuits_view",
        (
            View("patching", "Patching", draw_patching, words.patching, PATCHED, own_text=True),
            View(
                "steering",
                "Steering",
                draw_steering,
                words_weights.STEERING,
                (direction, continued),
                own_text=True,
            ),
            View(
                "quantisation",
                "Few bits",
                draw_quantisation,
                words_weights.QUANTISATION,
                (rounded, twin),
            ),
        ),
        text=words.TEXT,
        model=REAL_MODEL,
    )
)
