"""A run that trains on a synthetic task: the share of problems solved beside the loss, and what it writes,
marked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from engine.data.tasks.all import TASKS
from engine.data.tasks.task import Task, marked
from engine.service.state import RunSpec, RunView
from engine.training.records import Evaluation
from pages.start.train import words_tasks as words
from pages.start.train.curve_points import newest_of_each
from ui.figures.solved import Solved, solved_curves
from ui.players.plot import plot


def task_of(spec: RunSpec) -> Task | None:
    """Returns the task that a run trains on; None for a text."""
    return TASKS.get(spec.corpus)


def solved(view: RunView, task: Task, height: int) -> None:
    """Draws the accuracy by step, of held-out problems and of those trained on."""
    draw_shares(view, "solved", height, lambda look: words.alt(task, look))


def draw_shares(
    view: RunView,
    name: str,
    height: int,
    alt: Callable[[Evaluation | None], str],
    what: str = "problems solved",
) -> None:
    """Draws the share that is right by step, of what is held out and of what it was trained on."""
    looks = [look for look in newest_of_each(view.history.evaluations) if look.task is not None]
    steps = np.array([look.step for look in looks])
    parts = {
        "held out": ("validation", [look.task.validation for look in looks if look.task]),
        "trained on": ("training", [look.task.train for look in looks if look.task]),
    }
    lines = [Solved(part, steps, np.array(shares), shade) for part, (shade, shares) in parts.items()]
    plot(
        solved_curves(lines, float(view.total_steps), what=what),
        key="solved_chart",
        alt=alt(looks[-1] if looks else None),
        height=height,
        data=pd.DataFrame({"step": steps, **{part: shares for part, (_, shares) in parts.items()}}),
        name=name,
    )


def written(task: Task, prompt: str, text: str) -> str:
    """Returns a sample with each of its lines marked."""
    return "\n" + words.marks(marked(task, (prompt + text).lstrip("\n")))


def answer(view: RunView, task: Task) -> str | None:
    """Returns the sentence that goes with it; None before the first look."""
    looks: list[Evaluation] = list(view.history.evaluations)
    return words.after(task, looks[-1], task.floor(view.spec.model.context)) if looks else None
