"""Circuits: famous experiments, each one click from its result."""

from engine.measure.circuits import (
    fact_recall,
    induction,
    knockout,
    sinks,
)
from engine.measure.circuits.patching import patch
from engine.measure.circuits.prompt_pairs import both_runs
from engine.measure.circuits.quantisation import rounded, twin
from engine.measure.circuits.steering import continued, direction
from pages.inside.circuits import words, words_behaviour, words_weights
from pages.inside.circuits.fact import draw_fact
from pages.inside.circuits.induction import draw_induction
from pages.inside.circuits.patching import draw_patching
from pages.inside.circuits.quantisation import draw_quantisation
from pages.inside.circuits.sinks import draw_sinks
from pages.inside.circuits.steering import draw_steering
from ui.model_needs import CAUSAL, HEADS, SAYS
from ui.models import REAL_MODEL
from ui.page_frame import Page, View, show

PATCHED = (patch, both_runs)
REPEATED = (induction.read_twice, knockout.knock_out, knockout.losses_without)
SUNK, TRACED = (sinks.measure,), (fact_recall.trace,)

show(
    Page(
        "Circuits",
        "circuits_view",
        (
            View(
                "patching",
                "Patching",
                draw_patching,
                words.patching,
                PATCHED,
                brings_text=True,
                question=words.PATCHING_QUESTION,
                shows=("interpretability", "mechanistic interpretability"),
                takes=(SAYS, CAUSAL),
            ),
            View(
                "induction",
                "Induction",
                draw_induction,
                words_behaviour.induction,
                REPEATED,
                brings_text=True,
                question=words_behaviour.INDUCTION_QUESTION,
                takes=(SAYS, CAUSAL, HEADS),
                best=(REAL_MODEL, "timelapse"),
            ),
            View(
                "sinks",
                "Attention sinks",
                draw_sinks,
                words_behaviour.sinks,
                SUNK,
                question=words_behaviour.SINKS_QUESTION,
                takes=(SAYS, CAUSAL, HEADS),
            ),
            View(
                "fact",
                "Fact recall",
                draw_fact,
                words_behaviour.fact,
                TRACED,
                brings_text=True,
                question=words_behaviour.FACT_QUESTION,
                takes=(SAYS, CAUSAL),
            ),
            View(
                "steering",
                "Steering",
                draw_steering,
                words_weights.STEERING,
                (direction, continued),
                brings_text=True,
                question=words_weights.STEERING_QUESTION,
                takes=(SAYS, CAUSAL),
            ),
            View(
                "quantisation",
                "Quantisation",
                draw_quantisation,
                words_weights.QUANTISATION,
                (rounded, twin),
                question=words_weights.QUANTISATION_QUESTION,
                takes=(SAYS,),
            ),
        ),
        text=words.TEXT,
        model=REAL_MODEL,
    )
)
