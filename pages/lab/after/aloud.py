"""The view of thinking aloud: one question, answered at once, after dots, or step by step."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.data.tasks.parity import PARITIES
from engine.data.tasks.task import examples
from engine.errors import CheckpointError
from engine.experiments.lab_races import shipped, specs_of
from engine.experiments.stored_races import Stored
from engine.experiments.thinking_aloud import ALOUD, AT_ONCE, DOTS, THINKING, accuracies
from engine.service.state import RunView
from pages.lab.after import words_aloud as words
from pages.lab.after.figures_aloud import accuracy_curves
from ui.players.plot import plot
from ui.race import show_race

HEIGHT = 304


def draw_aloud() -> None:
    """Draws one problem as each is taught it, and the race of the three, the stored one until there is
    another.
    """
    stored = _stored()
    st.code(_taught(), language=None)
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
