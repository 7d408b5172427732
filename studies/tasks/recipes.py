"""Recipes of the synthetic tasks: each solves its task on two slow cores in under a minute, but for modular
addition.

The recipes were tried with one thread (CPU seconds are beside the shipped models' curves, in
checkpoints/tasks/*/metrics.json): `python -m studies.experiments tasks` makes those models again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.config import ModelConfig, TrainConfig
from engine.presets import SMALL
from studies.tasks.task import Task

STREAM_CONTEXT = 32  # letters that are read of a stream

# What a task needs beside the preset `task`. Digits stand at fixed places: learned positions name these.
_ADDING: dict[str, Any] = {"position": "learned"}
_MODEL: dict[str, dict[str, Any]] = {"addition": _ADDING, "addition_reversed": _ADDING}
_TRAIN: dict[str, dict[str, Any]] = {"addition": {"steps": 600}, "addition_reversed": {"steps": 600}}


def task_recipe(task: Task) -> tuple[ModelConfig, TrainConfig]:
    """Returns a model whose context is one problem, and its training."""
    preset = SMALL["grokking" if task.answers_only else "task"]
    assert preset.train is not None
    context = STREAM_CONTEXT if task.stream else task.length
    vocabulary = len(task.alphabet) + (not task.stream)  # and the line break
    model = replace(preset.model, vocab_size=vocabulary, context=context, **_MODEL.get(task.name, {}))
    return model, replace(preset.train, **_TRAIN.get(task.name, {}))
