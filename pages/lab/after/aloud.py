"""The view of thinking aloud: a question, answered at once, after dots, or step by step. Its second mode are
many answers to a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tasks.parity import PARITIES, parity, running_parity
from engine.data.tasks.task import examples
from engine.errors import CheckpointError
from engine.experiments.lab_races import shipped, specs_of
from engine.experiments.stored_races import Stored
from engine.experiments.thinking_aloud import ALOUD, AT_ONCE, DOTS, THINKING, accuracies
from engine.measure.tasks.attempts import majority_at, pass_at
from engine.service.state import RunView
from engine.training.attempts import drawn
from pages.lab.after import guesses_aloud, words_attempts
from pages.lab.after import words_aloud as words
from pages.lab.after.attempts import draw_attempts
from pages.lab.after.figures_aloud import accuracy_curves
from ui import guess, widgets
from ui.page_frame import Words
from ui.players.plot import plot
from ui.race import show_race

HEIGHT = 304


def _mode() -> str:
    return widgets.settled(words.MODES, "aloud_mode", "training")


def question() -> str:
    """Returns the question of the mode that is chosen."""
    return words_attempts.QUESTION if _mode() == "attempts" else words.ALOUD_QUESTION


def read_as() -> Words:
    """Returns the words of the mode that is chosen."""
    return words_attempts.ATTEMPTS if _mode() == "attempts" else words.ALOUD_WORDS


def sources() -> tuple[Callable[..., object], ...]:
    """Returns the engine's functions behind the mode that is chosen."""
    return (pass_at, majority_at, drawn) if _mode() == "attempts" else (running_parity, parity)


def draw_aloud() -> None:
    """Draws the mode that is chosen: three ways to answer, or many answers."""
    left, right = st.columns([2, 7], gap="small", vertical_alignment="bottom")
    mode = widgets.select("Compute more", words.MODES, "aloud_mode", container=left, hint=words.MODE_HINT)
    if mode == "attempts":
        draw_attempts(right)
    else:
        _draw_race(right)


def _draw_race(container: DeltaGenerator) -> None:
    """Draws one problem as each is taught it, and the race of the three, the stored one until there is
    another.
    """
    stored = _stored()
    container.code(_taught(), language=None)
    guess.ask("dots", guesses_aloud.dots, stored)
    show_race(
        THINKING,
        "Thinking aloud",
        specs_of(THINKING),
        say=lambda views: words.answer(accuracies(views, stored)),
        stored=stored,
        height=HEIGHT,
        beside=lambda views: _accuracy(views, stored),
        more=lambda views: _more(views, stored),
    )


def _stored() -> Stored | None:
    """The race that is shipped; None where its file is not whole."""
    try:
        return shipped(THINKING)
    except CheckpointError:
        return None


def _taught() -> str:
    """The same bits in the three tasks, a line each, behind its name."""
    bits = examples(PARITIES[AT_ONCE], 1)[0].strip().partition(">")[0]
    lines = []
    for name in (AT_ONCE, DOTS, ALOUD):
        task = PARITIES[name]
        question, answer = task.asks(bits), task.answer
        assert question is not None and answer is not None
        lines.append(f"{words.LABELS[name]:<16}{question}{answer(question)}")
    return "\n".join(lines)


def _accuracy(views: Sequence[RunView], stored: Stored | None) -> None:
    """Draws the share of new problems that each solves, by step."""
    scores = accuracies(views, stored)
    plot(
        accuracy_curves(scores, float(max((view.total_steps for view in views), default=1))),
        key="aloud_accuracy",
        height=HEIGHT,
        name="thinking-aloud",
        data=pd.concat(
            [
                pd.DataFrame(each.shares.T).add_prefix("seed ").assign(run=each.title, step=each.steps)
                for each in scores
            ]
            or [pd.DataFrame()]
        ),
        alt=words.accuracy_alt(scores),
    )


def _more(views: Sequence[RunView], stored: Stored | None) -> None:
    st.markdown(words.measured(accuracies(views, stored)))
