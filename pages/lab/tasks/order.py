"""The view of the order of digits: the same sums, written from either end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from engine.data.tasks.all import TASKS
from engine.experiments.lab_races import ADDITIONS, DIGITS, specs_of
from engine.experiments.race_table import name_of
from engine.measure.tasks.task_scores import by_carries
from engine.sample.problems import lines_of
from engine.service.state import RunView
from pages.lab.tasks import words
from ui import memo, session
from ui.figures.race import DASHES, SHADES
from ui.figures.solved import Solved, solved_curves
from ui.models import task_model
from ui.players.plot import plot
from ui.race import show_race, stored_race

HEIGHT = 340
SUMS = 1000  # that are asked of each model


def draw_order() -> None:
    """Draws the race of both, the stored one until there is another; beside the losses, who
    solves how much.
    """
    stored = stored_race(DIGITS)
    show_race(
        DIGITS,
        "Digit order",
        specs_of(DIGITS),
        say=lambda views: words.order(views, stored.repeats_of(views) if stored else ()),
        stored=stored,
        height=HEIGHT,
        beside=_solved,
        more=_carries,
    )


def _solved(views: Sequence[RunView]) -> None:
    """The share of new sums that each has right, by step."""
    curves = []
    for index, view in enumerate(views):
        looks = [(look.step, look.task.validation) for look in view.history.evaluations if look.task]
        steps, shares = (np.array([look[i] for look in looks]) for i in (0, 1))
        curves.append(Solved(name_of(view), steps, shares, SHADES[index], DASHES[index]))
    plot(
        solved_curves(curves, float(max((view.total_steps for view in views), default=1))),
        key="order_solved",
        height=HEIGHT,
        alt=words.order_alt(curves),
        data=pd.concat(
            [pd.DataFrame({"run": c.name, "step": c.steps, "solved": c.shares}) for c in curves]
            or [pd.DataFrame()]
        ),
        name="digits-solved",
    )


def _carries(_: Sequence[RunView]) -> None:
    """Draws what is left to go wrong: sums in which a carry runs on."""
    st.markdown(words.carries({TASKS[name].title: _by_carries(name) for name in ADDITIONS}, SUMS))


@memo.measured()
def _by_carries(name: str) -> Mapping[bool, tuple[int, float]]:
    task, checkpoint = TASKS[name], task_model(name)
    lines = lines_of(session.corpus(name).validation, task.length, SUMS)
    return by_carries(checkpoint.model, checkpoint.tokenizer, task, lines)
