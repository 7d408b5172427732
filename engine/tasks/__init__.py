"""Synthetic tasks whose best possible loss is known exactly: problems with answers that can be checked."""

from engine.tasks.all import MODULUS, SIGNS, TASKS
from engine.tasks.task import Task, examples, marked, problems

__all__ = ["MODULUS", "SIGNS", "TASKS", "Task", "examples", "marked", "problems"]
