"""The parts of chains of thought: a question, answered at once, after dots, or step by step."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.tasks.task import examples
from engine.experiments.stored_races import Stored
from engine.experiments.thinking_aloud import ALOUD, Problem, accuracies
from engine.service.state import RunView
from pages.lab.after import guesses_aloud as guesses
from pages.lab.after import words_aloud as words
from pages.lab.after.figures_aloud import accuracy_curves
from ui import guess
from ui.layout import link_to
from ui.players.plot import plot
from ui.race import show_race, stored_race

HEIGHT = 304


def draw_aloud(problem: Problem, title: str, named: str, container: DeltaGenerator) -> None:
    """Draws an example of a problem as each of the three is taught it, with what stands before an answer, and
    the race of the three, the stored one until there is another.
    """
    stored = stored_race(problem.race)
    container.code(_taught(problem, named), language=None)
    guess.ask("dots", guesses.dots, stored)
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


def _taught(problem: Problem, name: str) -> str:
    """Returns the same question in the three tasks, a line each, behind its label; `name` stands where the
    answer begins, in one column.
    """
    at_once = next(iter(problem.tasks.values()))
    start, texts = examples(at_once, 1)[0].strip()[: at_once.given], []
    for task in problem.tasks.values():
        question, answer = task.asks(start), task.answer
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
