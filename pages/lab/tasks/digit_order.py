"""The view "Digit order": the same sums, written from either end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from runs.state import RunView
from studies.experiments.lab_races import ADDITIONS, DIGITS, specs_of
from studies.experiments.race_table import name_of
from studies.tasks.all import TASKS
from studies.tasks.lines import adding
from studies.tasks.problems import lines_of
from studies.tasks.task_scores import SOLVED, by_carries, median_solved
from ui import content, memo, session
from ui.figures.losses import DASHES, SHADES
from ui.figures.solved import Solved, solved_curves
from ui.models import task_model
from ui.page_frame import View
from ui.players.plot import plot
from ui.race import show_race, stored_race

TEXT = content.beside(__file__)
HEIGHT = 340
SUMS = 1000  # that are asked of each model


def draw() -> None:
    """Draws the race of both, the stored one until there is another; beside the losses, who
    solves how much.
    """
    stored = stored_race(DIGITS)
    show_race(
        DIGITS,
        "Digit order",
        specs_of(DIGITS),
        say=lambda views: _answer(views, stored.repeats_of(views) if stored else ()),
        stored=stored,
        height=HEIGHT,
        beside=_solved,
        more=_carries,
    )


def _answer(views: Sequence[RunView], repeats: Sequence[RunView] = ()) -> str:
    """Says which run first had nearly all new sums right, and when; of the others, what they have now.
    `repeats` are the same with other seeds: then a step is the median over seeds.
    """
    over = {
        name_of(view): [
            each.history.evaluations for each in (view, *repeats) if name_of(each) == name_of(view)
        ]
        for view in views
    }
    firsts = {name: median_solved(runs) for name, runs in over.items()}
    solved = sorted((step, name) for name, step in firsts.items() if step is not None)
    seeds = len(next(iter(over.values()), ()))
    clauses = []
    if solved:
        (step, first), others = solved[0], solved[1:]
        clauses.append(
            ", ".join(
                [
                    TEXT(
                        "first of seeds" if seeds > 1 else "first",
                        name=first,
                        solved=SOLVED,
                        step=step,
                        seeds=seeds,
                    ),
                    *(TEXT("lead", steps=other - step, name=name) for other, name in others if other > step),
                ]
            )
        )
    for view in views:
        newest = view.history.evaluations[-1] if view.history.evaluations else None
        if firsts[name_of(view)] is None and newest is not None and newest.task is not None:
            share = newest.task.validation
            clauses.append(TEXT("so far", name=name_of(view), share=share, step=newest.step))
    return "; ".join(clauses) + "." if clauses else TEXT["nothing yet"]


def _solved(views: Sequence[RunView]) -> None:
    """The share of new sums that each has right, by step."""
    curves = []
    for index, view in enumerate(views):
        looks = [(look.step, look.task.validation) for look in view.history.evaluations if look.task]
        steps, shares = (np.array([look[i] for look in looks]) for i in (0, 1))
        curves.append(Solved(name_of(view), steps, shares, SHADES[index], DASHES[index]))
    ends = [TEXT("end", name=c.name, share=c.shares[-1]) for c in curves if len(c.shares)]
    plot(
        solved_curves(curves, float(max((view.total_steps for view in views), default=1))),
        key="order_solved",
        height=HEIGHT,
        alt=TEXT("alt", ends=", ".join(ends) or TEXT["no end"]),
        data=pd.concat(
            [pd.DataFrame({"run": c.name, "step": c.steps, "solved": c.shares}) for c in curves]
            or [pd.DataFrame()]
        ),
        name="digits-solved",
    )


def _carries(_: Sequence[RunView]) -> None:
    """Draws what is left to go wrong: sums in which a carry runs on."""
    models = []
    for name in ADDITIONS:
        shares = _by_carries(name)
        sums, there = shares[True]
        models.append(
            TEXT(
                "carries of a model",
                name=TASKS[name].title,
                there=there,
                sums=sums,
                elsewhere=shares[False][1],
            )
        )
    st.markdown(" ".join([TEXT("carries", problems=SUMS), *models]))


@memo.measured()
def _by_carries(name: str) -> Mapping[bool, tuple[int, float]]:
    task, checkpoint = TASKS[name], task_model(name)
    lines = lines_of(session.corpus(name).validation, task.length, SUMS)
    return by_carries(checkpoint.model, checkpoint.tokenizer, task, lines)


VIEW = View("order", TEXT, draw, code=(adding, by_carries), needs_model=False)
