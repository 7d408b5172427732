"""The small models that come with the tasks: one is chosen, read, and looked into."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.data.corpus import Corpus
from studies.tasks.all import MODELLED
from studies.tasks.task import Task
from studies.tasks.task_scores import TaskCurve, task_curve
from ui import session, site, widgets
from ui.models import TASK, task_model


def choose_task(names: Sequence[str]) -> Task:
    """Draws the choice of one of some tasks; it goes along from view to view."""
    titles = {name: MODELLED[name].title for name in names}
    return MODELLED[widgets.select("Task", titles, "task", kind="pills", hidden=True, wrap=True)]


def shipped(task: Task) -> tuple[Checkpoint, TaskCurve, Corpus]:
    """Returns a task's model, its curve and the task's problems."""
    checkpoint = task_model(task.name)
    return checkpoint, task_curve(checkpoint.metrics), session.corpus(task.name)


def look_inside(task: Task) -> None:
    """Draws the way to the pages that look inside, with this model."""
    entry = site.entry_of("attention")
    pressed = st.button("Look inside", icon=":material/search:", type="tertiary", key="task_look_inside")
    if pressed and entry is not None:
        st.switch_page(entry.path, query_params={"model": TASK + task.name})
