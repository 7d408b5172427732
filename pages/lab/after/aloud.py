"""The view of chains of thought: a question, answered at once, after dots, or step by step. Its second mode
are many answers to a question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tasks.carries import column_steps, long_addition
from engine.data.tasks.parity import parity, running_parity
from engine.data.tasks.task import examples
from engine.errors import CheckpointError
from engine.experiments.lab_races import shipped
from engine.experiments.stored_races import Stored
from engine.experiments.thinking_aloud import ALOUD, PROBLEMS, Problem, accuracies
from engine.measure.tasks.attempts import drawn, majority_at, pass_at
from engine.service.state import RunView
from pages.lab.after import guesses_aloud, words_attempts
from pages.lab.after import words_aloud as words
from pages.lab.after.attempts import draw_attempts
from pages.lab.after.figures_aloud import accuracy_curves
from ui import guess, widgets
from ui.layout import link_to
from ui.page_frame import Ask, Words
from ui.players.plot import plot
from ui.race import show_race

HEIGHT = 304
PROBLEM, PARITY = "aloud_problem", "parity"  # the control, and its first choice


def _mode() -> str:
    return widgets.settled(words.MODES, "aloud_mode", "training")


def _problem() -> str:
    return widgets.settled(words.PROBLEMS, PROBLEM, PARITY)


ASKS = (
    Ask(words.ALOUD_QUESTION, words.WORDS[PARITY]),
    Ask(words_attempts.QUESTION, words_attempts.ATTEMPTS, (("aloud_mode", "attempts"),)),
)


def question() -> str:
    """Returns the question of the mode that is chosen."""
    return words_attempts.QUESTION if _mode() == "attempts" else words.ALOUD_QUESTION


def read_as() -> Words:
    """Returns the words of the mode that is chosen."""
    return words_attempts.ATTEMPTS if _mode() == "attempts" else words.WORDS[_problem()]


def sources() -> tuple[Callable[..., object], ...]:
    """Returns the engine's functions behind the mode that is chosen."""
    if _mode() == "attempts":
        return pass_at, majority_at, drawn
    return (running_parity, parity) if _problem() == PARITY else (column_steps, long_addition)


def draw_aloud() -> None:
    """Draws the mode that is chosen: three ways to answer, or many answers."""
    left, right = st.columns([2, 7], gap="small", vertical_alignment="bottom")
    mode = widgets.select("More compute", words.MODES, "aloud_mode", container=left, hint=words.MODE_HINT)
    if mode == "attempts":
        draw_attempts(right)
    else:
        _draw_race(right)


def _draw_race(container: DeltaGenerator) -> None:
    """Draws the choice of a problem, an example as each is taught it, and the race of the three, the stored
    one until there is another.
    """
    left, right = container.columns([2, 5], gap="small", vertical_alignment="bottom")
    chosen = widgets.select("Problem", words.PROBLEMS, PROBLEM, container=left)
    problem, title = PROBLEMS[chosen], words.RACES[chosen]
    stored = _stored(problem)
    right.code(_taught(problem, words.ANSWERS[chosen]), language=None)
    guess.ask("dots", guesses_aloud.dots, stored)
    show_race(
        problem.race,
        title,
        problem.specs(),
        say=lambda views: words.answer(accuracies(views, stored)),
        stored=stored,
        height=HEIGHT,
        beside=lambda views: _accuracy(views, stored, problem),
        more=lambda views: _more(views, stored),
    )


def _stored(problem: Problem) -> Stored | None:
    """The race that is shipped; None where its file is not whole."""
    try:
        return shipped(problem.race)
    except CheckpointError:
        return None


def _taught(problem: Problem, name: str) -> str:
    """Returns the same question in the three tasks, a line each, behind its label; `name` stands where the
    answer begins, in one column.
    """
    at_once = next(iter(problem.tasks.values()))
    asked, texts = examples(at_once, 1)[0].strip()[: at_once.given], []
    for task in problem.tasks.values():
        question, answer = task.asks(asked), task.answer
        assert question is not None and answer is not None
        texts.append(question + answer(question))
    last = len(texts[0]) - at_once.given  # characters of the answer itself
    label, steps = (max(map(len, column)) for column in (words.LABELS.values(), texts))
    return "\n".join(
        f"{words.LABELS[task.title]:<{label}}  {text[:-last]:<{steps - last}}  {name} {text[-last:]}"
        for task, text in zip(problem.tasks.values(), texts, strict=True)
    )


def _accuracy(views: Sequence[RunView], stored: Stored | None, problem: Problem) -> None:
    """Draws the share of new problems that each solves, by step."""
    scores = accuracies(views, stored)
    end = float(max((view.total_steps for view in views), default=1))
    plot(
        accuracy_curves(scores, end, problem.chance),
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
    if ALOUD in problem.tasks:
        link_to("tasks", words.WHICH_HEAD, tasks_view="heads", task=ALOUD)


def _more(views: Sequence[RunView], stored: Stored | None) -> None:
    st.markdown(words.measured(accuracies(views, stored)))
