"""How a task was learned: the curve that is kept beside a shipped model, and when it was solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.errors import CheckpointError
from engine.training.records import Evaluation

SOLVED = 0.95  # of the problems: from here on a task counts as solved


@dataclass(frozen=True, eq=False)
class TaskCurve:
    """All are (look,): losses in nats per token, shares from 0 to 1 of problems trained on and held out."""

    steps: np.ndarray = field(repr=False)
    train_loss: np.ndarray = field(repr=False)
    validation_loss: np.ndarray = field(repr=False)
    train_solved: np.ndarray = field(repr=False)
    solved: np.ndarray = field(repr=False)

    def step_of(self, share: float, trained_on: bool = False) -> int | None:
        """The first look at which at least `share` of the held-out problems (or of those trained on) is
        solved, whatever comes later; None where that never was.
        """
        found = np.flatnonzero((self.train_solved if trained_on else self.solved) >= share)
        return int(self.steps[found[0]]) if len(found) else None

    def solved_after(self, step: int) -> float:
        """The share of held-out problems solved at the last look up to a step."""
        return float(self.solved[self.steps <= step][-1])

    @property
    def best_solved(self) -> float:
        return float(self.solved.max())


def first_solved(looks: Sequence[Evaluation], share: float = SOLVED) -> int | None:
    """The step of the first look at which at least `share` of the held-out problems is solved; None where
    that has not been.
    """
    return next((look.step for look in looks if look.task and look.task.validation >= share), None)


def task_curve(metrics: Mapping[str, Any]) -> TaskCurve:
    """Of a shipped model's metrics. Raises CheckpointError when there is none in them."""
    try:
        curve = metrics["curve"]
        names = ("step", "train_loss", "validation_loss", "train_solved", "solved")
        return TaskCurve(*(np.array([point[name] for point in curve], dtype=float) for name in names))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"these metrics hold no curve of a task: {error}") from error
