"""The small models that come with the tasks, how they were trained, and a training of one's own."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.data.corpus import Corpus
from engine.data.tasks.all import MODELLED
from engine.data.tasks.task import Task
from engine.errors import GlassformerError
from engine.experiments.lab_races import task_spec
from engine.measure.tasks.task_scores import TaskCurve, task_curve
from engine.weights.checkpoints import Checkpoint
from pages.lab.tasks import words
from ui import session, site, widgets
from ui.models import TASK, task_model
from ui.text.markdown import safe


def choose_task(names: Sequence[str]) -> Task:
    """Draws the choice of one of some tasks; it goes along from view to view."""
    return MODELLED[widgets.select("Task", _titles(names), "task", kind="pills", hidden=True, wrap=True)]


def task_chosen(names: Sequence[str]) -> Task:
    """Returns the task that `choose_task` will show, before it is drawn."""
    return MODELLED[widgets.settled(_titles(names), "task")]


def _titles(names: Sequence[str]) -> dict[str, str]:
    return {name: MODELLED[name].title for name in names}


def shipped(task: Task) -> tuple[Checkpoint, TaskCurve, Corpus]:
    """Returns a task's model, its curve and the task's problems."""
    checkpoint = task_model(task.name)
    return checkpoint, task_curve(checkpoint.metrics), session.corpus(task.name)


def train_it(task: Task) -> None:
    """Draws the button that trains it live, on the training page."""
    if st.session_state.pop("train_task", None) == task.name:
        try:
            run = session.manager().start(task_spec(task.name), session.owner())
        except GlassformerError as error:
            st.error(safe(str(error)))
        else:
            st.session_state["run_id"] = st.session_state["run_in_hand"] = run
            entry = site.entry_of("train")
            assert entry is not None
            st.switch_page(entry.path, query_params={"run": run, "data": "task", "task": task.name})
    st.button(
        "Train it live",
        icon=":material/play_arrow:",
        key="train_task_live",
        on_click=lambda: st.session_state.update(train_task=task.name),
        help=words.live(task),
    )


def look_inside(task: Task) -> None:
    """Draws the way to the pages that look inside, with this model."""
    entry = site.entry_of("attention")
    pressed = st.button("Look inside", icon=":material/search:", type="tertiary", key="task_look_inside")
    if pressed and entry is not None:
        st.switch_page(entry.path, query_params={"model": TASK + task.name})
