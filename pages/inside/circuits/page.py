"""Circuits: famous experiments, each one click from its result."""

from engine.measure.contrast import both_runs
from engine.measure.patching import patch
from pages.inside.circuits import words
from pages.inside.circuits.patching import draw_patching
from ui.look import Page, View, show
from ui.models import REAL_MODEL

PATCHED = (patch, both_runs)

show(
    Page(
        "Circuits: which parts do the work",
        "circuits_view",
        (View("patching", "Patching", draw_patching, words.PATCHING, PATCHED, own_text=True),),
        text=words.TEXT,
        model=REAL_MODEL,
    )
)
