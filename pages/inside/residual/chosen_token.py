"""The token that the views of the residual stream look at, and the text that is read up to it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from engine.config import ModelConfig
from studies.residual.lens import sureness, telling
from ui.model_bar import Subject

POSITION = "residual_position"
BLANKS = "␣⏎⇥"
READ = 24  # letters of the text before a token that are repeated


def first_position(subject: Subject) -> int:
    """Returns the token that is looked at until another is chosen: a gap, else one after which the guess is
    sure, and right.
    """
    if subject.gap is not None:
        return subject.gap
    recording = subject.recording()
    guesses = recording.guesses
    return telling(guesses, following(subject), sureness(recording.logits), blanks(subject, guesses))


def read_so_far(subject: Subject, position: int) -> str:
    """Returns the end of the text that is read up to a token; an encoder's token alone."""
    if not subject.config.causal:
        return subject.labels[position]
    read = "".join(subject.labels[: position + 1])
    return read if len(read) <= READ else f"…{read[-READ:]}"


def blanks(subject: Subject, guesses: np.ndarray) -> set[int]:
    """Returns the ids among some guesses that are blanks only."""
    return {int(i) for i in guesses if not subject.vocabulary[int(i)].strip(BLANKS)}


def following(subject: Subject) -> list[int | None]:
    """Returns the token that each guess is held against: the next one, for an encoder the token itself; None
    where nothing is known.
    """
    return [*subject.ids[1:], None] if subject.config.causal else list(subject.ids)


def where(config: ModelConfig) -> Literal["after", "at"]:
    """Returns where a guess stands: a causal model guesses what comes after a token; an encoder, what stands
    there.
    """
    return "after" if config.causal else "at"
