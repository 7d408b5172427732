"""Stored fine-tunings with other seeds than the visitor's, beside which the view draws its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from engine.errors import CheckpointError
from engine.experiments.finetune_runs import REAL, SMALL, FinetuneRun, shipped
from engine.training.post_training.lessons import STYLES, TOPICS, Setting, TextLesson
from ui import models
from ui.model_bar import Subject
from ui.text.markdown import safe


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


def ended(runs: Sequence[FinetuneRun]) -> tuple[int, int, np.ndarray]:
    """Returns how many runs there are, their last step, and their values there (run, value)."""
    return len(runs), runs[0].steps[-1], np.array([run.values[-1] for run in runs])
