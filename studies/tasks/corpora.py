"""Corpora of the synthetic tasks, by the tasks' names in `engine.data.corpora`."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import torch

from engine.data.corpora import MADE, from_text
from engine.data.corpus import VALIDATION_SHARE, Corpus
from engine.data.tokenizers.char import CharTokenizer
from engine.errors import CorpusError
from studies.tasks.all import TASKS
from studies.tasks.carries import CALLING, LONG_ADDITIONS
from studies.tasks.parity import PARITIES
from studies.tasks.problems import task_scores
from studies.tasks.task import Task, problems

PROBLEMS = 20_000  # of a task, those that are held out included
STREAM = 200_000  # letters of one that has no problems


def from_task(task: Task, tokenizer: str = "char") -> Corpus:
    """Makes a corpus of a synthetic task, in characters alone. Raises CorpusError for other tokens."""
    if tokenizer != "char":
        raise CorpusError(
            f"the task {task.title} is written in single characters: the tokenizer must be char, not"
            f" {tokenizer}"
        )
    if task.stream:
        text = task.draw(random.Random(f"{task.name}-0"), STREAM)
        return replace(from_text(text, task.name), task=task, solved=task_scores)
    held_out = round(PROBLEMS * VALIDATION_SHARE)
    parts = ["\n" + "".join(line + "\n" for line in p) for p in problems(task, PROBLEMS - held_out, held_out)]
    letters = CharTokenizer("".join(sorted({"\n", *task.alphabet})))
    train, validation = (torch.from_numpy(letters.encode_array(part)) for part in parts)
    return Corpus(task.name, "".join(parts), letters, train, validation, task=task, solved=task_scores)


MADE |= {
    task.name: partial(from_task, task) for task in (*(TASKS | PARITIES | LONG_ADDITIONS).values(), CALLING)
}
