"""The view of grokking: knowing one's own sums by heart, and finding the rule long after."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from engine.data.tasks.all import TASKS
from engine.measure.tasks.task_scores import SOLVED
from pages.lab.tasks import figures, words
from pages.lab.tasks.shipped import look_inside, shipped, train_it
from ui import explain, widgets
from ui.players.plot import plot

HEIGHT = 400


def draw_grokking() -> None:
    """Draws both curves; the steps in powers of ten, unless asked otherwise."""
    task = TASKS["modular"]
    found, curve, corpus = shipped(task)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        axis = widgets.select("Steps", words.AXES, "grokking_axis", hidden=True)
        train_it(task)
        look_inside(task)
    plot(
        figures.learned(curve, task.floor(found.config.context), log=axis == "log"),
        key="grokking",
        height=HEIGHT,
        alt=words.grokking_alt(curve),
        name="grokking",
        data=pd.DataFrame(vars(curve)),
    )
    steps = curve.step_of(SOLVED, trained_on=True), curve.step_of(SOLVED)
    explain.answer(words.grokked(*steps, curve))
    explain.measure_it(_measured, found.metrics, *corpus.problems)


def _measured(metrics: dict[str, object], train: int, validation: int) -> None:
    task = TASKS["modular"]
    st.markdown(words.grokking_recipe(task, metrics, train, validation))
