"""Circuits: famous experiments, each one click from its result."""

from engine.measure import fact, induction, knockout, sinks
from engine.measure.contrast import both_runs
from engine.measure.patching import patch
from pages.inside.circuits import words, words_behaviour
from pages.inside.circuits.fact import draw_fact
from pages.inside.circuits.induction import draw_induction
from pages.inside.circuits.patching import draw_patching
from pages.inside.circuits.sinks import draw_sinks
from ui.look import Page, View, show
from ui.models import REAL_MODEL

PATCHED = (patch, both_runs)
REPEATED = (induction.read_twice, knockout.knock_out, knockout.losses_without)
SUNK, TRACED = (sinks.measure,), (fact.trace,)

show(
    Page(
        "Circuits: which parts do the work",
        "circuits_view",
        (
            View("patching", "Patching", draw_patching, words.patching, PATCHED, own_text=True),
            View(
                "induction", "Induction", draw_induction, words_behaviour.induction, REPEATED, own_text=True
            ),
            View("sinks", "Sinks", draw_sinks, words_behaviour.sinks, SUNK),
            View("fact", "A fact", draw_fact, words_behaviour.fact, TRACED, own_text=True),
        ),
        text=words.TEXT,
        model=REAL_MODEL,
    )
)
