"""Circuits: famous experiments, each one click from its result."""

from engine.measure.circuits import (
    fact_recall,
    induction,
    knockout,
    sinks,
)
from engine.measure.circuits.quantisation import rounded, twin
from engine.measure.circuits.steering import continued, direction
from pages.inside.circuits import patching, prompts, words_behaviour, words_weights
from pages.inside.circuits.fact import draw_fact
from pages.inside.circuits.induction import draw_induction
from pages.inside.circuits.quantisation import draw_quantisation
from pages.inside.circuits.sinks import draw_sinks
from pages.inside.circuits.steering import draw_steering
from ui.model_needs import CAUSAL, HEADS, SAYS
from ui.models import REAL_MODEL
from ui.page_frame import Page, View, show

REPEATED = (induction.read_twice, knockout.knock_out, knockout.losses_without)
SUNK, TRACED = (sinks.measure,), (fact_recall.trace,)

show(
    Page(
        "Circuits",
        "circuits_view",
        (
            patching.VIEW,
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
        text=prompts.PARIS_AND_ROME,
        model=REAL_MODEL,
    )
)
