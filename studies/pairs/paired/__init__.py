"""Tasks with a source and a target, whose alignment is known: dates, numbers, a small language, letters."""

from __future__ import annotations

from studies.pairs.paired.dates import DATES
from studies.pairs.paired.language import LANGUAGE
from studies.pairs.paired.letters import alphabetical, backwards, reordering
from studies.pairs.paired.numbers import NUMBERS, WORDS
from studies.pairs.paired.task import Aligned, PairTask, Rule, pairs

__all__ = ["PAIR_TASKS", "Aligned", "PairTask", "Rule", "pairs"]

_LETTERS = "abcdefghijkl"

_ALL = (
    DATES,
    LANGUAGE,
    NUMBERS,
    WORDS,
    reordering("reverse", "Reverse", "Write the characters backwards.", _LETTERS, 3, 12, backwards),
    reordering("sort", "Sort", "Write them in alphabetical order.", _LETTERS, 3, 12, alphabetical, True),
)

PAIR_TASKS: dict[str, PairTask] = {task.name: task for task in _ALL}  # by their names in links
