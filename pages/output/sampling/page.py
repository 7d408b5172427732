"""Sampling: one position's logits on their way to a token."""

from engine.sample.branches import Likelihood
from engine.sample.generate import steps
from engine.sample.outcome import tally
from engine.sample.scoring import Scored, score
from engine.sample.stages import draw, min_p, repetition_penalty, stages, temperature, top_k, top_p
from pages.output.sampling import words
from pages.output.sampling.likelihood import draw_likelihood
from pages.output.sampling.stages import draw_stages
from pages.output.sampling.temperatures import draw_temperatures
from ui.model_needs import CAUSAL, SAYS
from ui.page_frame import Page, View, show

show(
    Page(
        "Sampling",
        "sampling_view",
        (
            View(
                "stages",
                "Stage by stage",
                draw_stages,
                words.STAGES,
                (stages, repetition_penalty, temperature, top_k, top_p, min_p, draw, tally),
                question=words.STAGES_QUESTION,
                takes=(SAYS,),
            ),
            View(
                "temperatures",
                "Temperature",
                draw_temperatures,
                words.TEMPERATURES,
                (temperature, steps),
                question=words.TEMPERATURES_QUESTION,
                takes=(SAYS,),
            ),
            View(
                "likelihood",
                "Perplexity",
                draw_likelihood,
                words.LIKELIHOOD,
                (score, Scored, Likelihood),
                question=words.LIKELIHOOD_QUESTION,
                takes=(SAYS, CAUSAL),
            ),
        ),
        text="KING RICHARD II:\n",
    )
)
