"""When a model in training solves a synthetic task, and by which rule it answers."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.data.tokenizers import Tokenizer
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.training.records import Evaluation
from studies.tasks.problems import Answered, answered, share_right
from studies.tasks.task import Task

SOLVED = 0.95  # of the problems: from here on a task counts as solved


@dataclass(frozen=True, eq=False)
class TaskCurve:
    """The scores of a task at each evaluation, (evaluation,): losses in nats, shares solved."""

    steps: np.ndarray = field(repr=False)
    train_loss: np.ndarray = field(repr=False)
    validation_loss: np.ndarray = field(repr=False)
    train_solved: np.ndarray = field(repr=False)
    solved: np.ndarray = field(repr=False)

    def step_of(self, share: float, trained_on: bool = False) -> int | None:
        """Returns the first step with at least `share` solved of those held out or trained on, or None."""
        result = np.flatnonzero((self.train_solved if trained_on else self.solved) >= share)
        return int(self.steps[result[0]]) if len(result) else None

    def solved_after(self, step: int) -> float:
        """Returns the share of held-out problems solved at the last evaluation up to a step."""
        return float(self.solved[self.steps <= step][-1])

    @property
    def best_solved(self) -> float:
        return float(self.solved.max())


def first_solved(looks: Sequence[Evaluation], share: float = SOLVED) -> int | None:
    """Returns the first evaluation's step with at least `share` of held-out problems solved, or None."""
    return next((look.step for look in looks if look.task and look.task.validation >= share), None)


def median_solved(runs: Sequence[Sequence[Evaluation]]) -> int | None:
    """Returns the median of `first_solved` over runs of one model with several seeds (of an even number, the
    lower of the two in the middle); None where that run never solved the task.
    """
    steps = [first_solved(looks) for looks in runs]
    found = statistics.median_low([math.inf if step is None else step for step in steps])
    return None if math.isinf(found) else int(found)


def task_curve(metrics: Mapping[str, Any]) -> TaskCurve:
    """Reads the curve from a shipped model's metrics. Raises CheckpointError when there is none."""
    try:
        curve = metrics["curve"]
        names = ("step", "train_loss", "validation_loss", "train_solved", "solved")
        return TaskCurve(*(np.array([point[name] for point in curve], dtype=float) for name in names))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"these metrics hold no curve of a task: {error}") from error


PROBES = 300  # circles with a letter out of turn
BREAK = "\n"


@dataclass(frozen=True)
class OutOfTurn:
    """The letters that a model of Repeat writes after one that came out of turn, as shares of `probes`
    circles. `after`: the letter that followed it before, as an induction head would; `longest`: the one that
    has not been seen for longest.
    """

    after: float
    longest: float
    probes: int


def out_of_turn_line(draws: random.Random, letters: str) -> tuple[str, str, str]:
    """Draws (read, after, longest): a circle of different letters, read for more than one round, whose last
    letter is out of turn; the letter that followed that one before; and the one whose turn it still is.
    """
    period = draws.randint(6, 9)
    piece = draws.sample(letters, period)
    read = [piece[i % period] for i in range(draws.randint(period + 2, 20))]
    due = len(read) % period
    wrong = draws.choice([i for i in range(period) if i != due and (i + 1) % period != due])
    return "".join(read) + piece[wrong], piece[(wrong + 1) % period], piece[due]


@torch.inference_mode()
def out_of_turn(
    model: Transformer, tokenizer: Tokenizer, letters: str, probes: int = PROBES, seed: int = 0
) -> OutOfTurn:
    """Probes whether a model of Repeat follows induction or "not seen for longest", which agree elsewhere."""
    draws = random.Random(seed)
    by_length: dict[int, list[tuple[str, str, str]]] = {}
    for _ in range(probes):
        line = out_of_turn_line(draws, letters)
        by_length.setdefault(len(line[0]), []).append(line)
    after = longest = 0
    for some in by_length.values():
        read = torch.tensor([tokenizer.encode(BREAK + line) for line, _, _ in some])
        answers = [tokenizer.decode([token]) for token in model(read)[:, -1].argmax(-1).tolist()]
        after += sum(each == follows for each, (_, follows, _) in zip(answers, some, strict=True))
        longest += sum(each == away for each, (_, _, away) in zip(answers, some, strict=True))
    return OutOfTurn(after / probes, longest / probes, probes)


def runs_on(question: str) -> bool:
    """True if a carry runs on through a column whose digits add up to nine: then the digit before depends on
    columns further right than its neighbour.

    >>> runs_on("045+057="), runs_on("045+157="), runs_on("044+055=")
    (True, True, False)
    """
    first, second = question.rstrip("=").split("+")
    carry = 0
    for a, b in zip(map(int, reversed(first)), map(int, reversed(second)), strict=True):
        if carry and a + b == 9:
            return True
        carry = int(a + b + carry > 9)
    return False


def by_carries(
    model: Transformer, tokenizer: Tokenizer, task: Task, lines: Tensor
) -> Mapping[bool, tuple[int, float]]:
    """Returns the count and the share right of sums in which a carry runs on, and of the others."""
    result: dict[bool, list[Answered]] = {True: [], False: []}
    for each in answered(model, tokenizer, task, lines):
        result[runs_on(each.question)].append(each)
    return {on: (len(some), share_right(some) if some else 0.0) for on, some in result.items()}
