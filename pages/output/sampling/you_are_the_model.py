"""The view "You are the model": a reader or a room guesses held-out text, and has a loss as a model has."""

from __future__ import annotations

from pages.output.sampling import class_guessing, guessing
from studies.generation.guessing_game import bounds, class_p, model_log_p, ngram_log_p, turn_nats, turns_of
from ui import content
from ui.model_needs import CAUSAL, CHARACTERS, SAYS
from ui.page_frame import Parts, View

TEXT = content.beside(__file__)

VIEW = View(
    "you",
    TEXT,
    parts=Parts("you_part", (guessing.PART, class_guessing.PART)),
    code=(turn_nats, turns_of, bounds, class_p, model_log_p, ngram_log_p),
    brings_text=True,
    takes=(SAYS, CAUSAL, CHARACTERS),
    shows=("Shannon's game", "guessing game"),
)
