"""Tasks with a source and a target, whose alignment is known: dates, numbers, a small language, letters."""

from engine.data.tasks.paired.all import PAIR_TASKS
from engine.data.tasks.paired.task import Aligned, PairTask, Rule, pairs

__all__ = ["PAIR_TASKS", "Aligned", "PairTask", "Rule", "pairs"]
