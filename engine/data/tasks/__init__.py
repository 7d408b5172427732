"""Synthetic tasks whose best possible loss is known exactly: problems with answers that can be checked."""

from engine.data.tasks.all import MODULUS, SIGNS, TASKS
from engine.data.tasks.task import (
    Task,
    examples,
    marked,
    problems,
)

__all__ = ["MODULUS", "SIGNS", "TASKS", "Task", "examples", "marked", "problems"]
