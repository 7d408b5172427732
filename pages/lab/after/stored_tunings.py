"""Stored fine-tunings with other seeds than the visitor's, beside which the view draws its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from engine.errors import CheckpointError
from studies.after.lessons import STYLES, TOPICS, Setting, TextLesson
from studies.experiments.finetune_runs import REAL, SMALL, FinetuneRun, shipped
from ui import content, models
from ui.figures import specs as go
from ui.figures.theme import colour
from ui.model_bar import Subject
from ui.text.markdown import safe

TEXT = content.beside(__file__)


def stored(subject: Subject, setting: Setting) -> tuple[FinetuneRun, ...]:
    """Returns the stored runs of this lesson with this method, by seed, as far as the visitor's goes; none
    for another model, for a lesson of a visitor's, and where the file is not whole.
    """
    if setting.answers_only:
        return ()
    topic, model = setting.topic, subject.key[0]
    lessons = TOPICS | STYLES
    name = (
        topic.name
        if isinstance(topic, TextLesson)
        else next((n for n, each in lessons.items() if each == topic), "")
    )
    if model != (SMALL if isinstance(topic, TextLesson) else models.PRETRAINED + REAL):
        return ()
    try:
        runs = shipped()
    except CheckpointError as error:
        st.info(safe(str(error)))
        return ()
    wanted = name, setting.recipe.rank, setting.rehearse
    alike = [run for run in runs if (run.plan.lesson, run.plan.rank, run.plan.rehearse) == wanted]
    return tuple(_up_to(run, setting.recipe.steps) for run in alike)


def _up_to(run: FinetuneRun, step: int) -> FinetuneRun:
    """Returns the looks of a run up to a step: the rate is constant, so that a longer run begins as a shorter
    one.
    """
    count = sum(each <= step for each in run.steps)
    return FinetuneRun(run.plan, run.steps[:count], run.values[:count], run.made)


def last_values(runs: Sequence[FinetuneRun]) -> np.ndarray:
    """Returns the values of the runs at their last step, (run, value)."""
    return np.array([run.values[-1] for run in runs])


def spread(runs: Sequence[FinetuneRun], ends: Sequence[str]) -> str:
    """Says at what the runs ended (Markdown): `ends` are sections that say it of each value."""
    last, step = len(runs) - 1, runs[0].steps[-1]
    return TEXT("spread", runs=len(runs), last=last, step=step, ends=content.Filled("; ".join(ends)))


def between(values: np.ndarray, form: str) -> str:
    """Returns the least and the largest of some numbers, once where they are written alike.

    >>> between(np.array([0.5, 0.25]), ".0%"), between(np.array([1.0, 1.001]), ".2f")
    ('25% to 50%', '1.00')
    """
    low, high = (format(float(value), form) for value in (values.min(), values.max()))
    return low if low == high else TEXT("between", low=low, high=high)


def live_line(
    steps: Sequence[int], values: np.ndarray, name: str, line: dict[str, Any], hover: str
) -> go.Trace:
    """Returns values by step of the visitor's own run; the first look alone is a large point."""
    return go.Scatter(
        x=list(steps),
        y=values,
        name=name,
        mode="lines+markers",
        line=line,
        marker={"size": 5 if len(steps) > 1 else 9},
        hovertemplate=f"{hover}<extra>{name}</extra>",
    )


def stored_line(steps: Sequence[int], values: np.ndarray, name: str, shade: str, hover: str) -> go.Trace:
    """Returns values by step of a stored run, as a thin line."""
    return go.Scatter(
        x=list(steps),
        y=values,
        name=name,
        mode="lines",
        opacity=0.5,
        showlegend=False,
        line={"color": colour(shade), "width": 1.0},
        hovertemplate=f"{hover}<extra>{TEXT('another seed', name=name)}</extra>",
    )
