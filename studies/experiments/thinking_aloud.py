"""Does thinking aloud help? The parity of 16 bits, or the sum of two numbers, answered at once, after dots,
and with the steps written out: `python -m studies.experiments races thinking carries` trains all three ways
of both with three seeds each and writes `checkpoints/races/thinking.json` and `carries.json`; the page's
button starts the same runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from engine.config import ModelConfig, TrainConfig
from runs.state import RunSpec, RunView
from studies.experiments.stored_races import Stored
from studies.tasks.carries import CALLING, LONG_ADDITIONS
from studies.tasks.parity import PARITIES
from studies.tasks.task import Task

THINKING, CARRIES = "thinking", "carries"  # the stored races
AT_ONCE, DOTS, ALOUD = PARITIES
NAMES = {name: task.title for name, task in (PARITIES | LONG_ADDITIONS).items()}
SOLVED, COIN = 0.95, 0.5  # shares of right answers: at least the first counts as solved; a coin's
CLOSE = 0.1  # of a coin's share: 100 problems scatter by 0.05

# What sums need beside the recipe of parity. Digits stand at fixed places: learned positions name these.
_SUMS = {"steps": 1200, "eval_every": 50, "snapshot_every": 300}
_MODEL: dict[str, dict[str, Any]] = {
    name: {"position": "learned"} for name in (*LONG_ADDITIONS, CALLING.name)
}
_TRAIN: dict[str, dict[str, Any]] = {name: _SUMS for name in (*LONG_ADDITIONS, CALLING.name)}


def recipe(task: Task) -> tuple[ModelConfig, TrainConfig]:
    """Returns the model and training, the same for all three ways: only the length of a line differs."""
    model = ModelConfig(
        vocab_size=len(task.alphabet) + 1,  # and the line break
        context=task.length,
        d_model=64,
        n_layers=2,
        n_heads=4,
        position="rope",  # a step's bit is always as many positions back: learned positions take longer
        rope_theta=1000.0,
    )
    train = TrainConfig(
        steps=600,
        batch_size=64,
        learning_rate=2e-3,
        weight_decay=0.0,
        beta2=0.99,
        warmup_steps=20,
        schedule="linear",
        eval_every=25,
        eval_tokens=2048,
        sample_every=0,  # a model that is graded on answers alone writes no questions
        snapshot_every=150,
    )
    return replace(model, **_MODEL.get(task.name, {})), replace(train, **_TRAIN.get(task.name, {}))


@dataclass(frozen=True)
class Problem:
    """A problem and its three ways to answer: `tasks` by their names (at once, with dots, aloud), the stored
    `race` of the three, and the share of answers, 0 to 1, that are right by `chance`.
    """

    race: str
    tasks: Mapping[str, Task] = field(repr=False)
    chance: float

    @property
    def ways(self) -> tuple[str, str, str]:
        """The names of the tasks: (at once, with dots, aloud)."""
        at_once, dots, aloud = self.tasks
        return at_once, dots, aloud

    def specs(self) -> tuple[RunSpec, ...]:
        """Returns the three runs of the race."""
        return tuple(RunSpec(*recipe(task), name, name=task.title) for name, task in self.tasks.items())


PROBLEMS = {
    "parity": Problem(THINKING, PARITIES, COIN),
    "addition": Problem(CARRIES, LONG_ADDITIONS, 0.0),  # one of a million sums
}
RACES = {problem.race: problem for problem in PROBLEMS.values()}


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The share of held-out problems whose parity or sum is right, of every seed of one way: `shares` (seed,
    look), 0 to 1, after `steps` (look,).
    """

    task: str
    steps: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)

    @property
    def title(self) -> str:
        return NAMES[self.task]

    @property
    def problem(self) -> Problem:
        return next(problem for problem in PROBLEMS.values() if self.task in problem.tasks)

    @property
    def mean(self) -> np.ndarray:
        """(look,)"""
        result: np.ndarray = self.shares.mean(0)
        return result

    @property
    def end(self) -> float:
        """The mean share at the end."""
        return float(self.mean[-1])

    @property
    def solved(self) -> bool:
        """True if every seed solves it in the end."""
        return bool((self.shares[:, -1] >= SOLVED).all())

    @property
    def guesses(self) -> bool:
        """True if every seed ends about at the share that is right by chance."""
        return bool((np.abs(self.shares[:, -1] - self.problem.chance) <= CLOSE).all())

    @property
    def solved_at(self) -> int | None:
        """The step from which on every look of every seed finds it solved; None where there is none."""
        fails = np.flatnonzero((self.shares < SOLVED).any(0))
        first = int(fails[-1]) + 1 if len(fails) else 0
        return int(self.steps[first]) if first < len(self.steps) else None


def mean_end(scores: Sequence[Accuracy]) -> float:
    """Returns the mean share at the end of several ways, one at least."""
    return sum(each.end for each in scores) / len(scores)


def accuracies(views: Sequence[RunView], stored: Stored | None) -> list[Accuracy]:
    """Returns what each of the runs shown solved by step, with its repeats under other seeds where it is a
    stored run; a run that has not been evaluated yet is left out.
    """
    repeats = stored.repeats_of(views) if stored else ()
    scores = []
    for view in views:
        curves = [_curve(each) for each in (view, *(r for r in repeats if r.name == view.name))]
        looks = min(len(steps) for steps, _ in curves)
        if looks:
            shares = np.stack([shares[:looks] for _, shares in curves])
            scores.append(Accuracy(view.spec.corpus, curves[0][0][:looks], shares))
    return scores


def _curve(view: RunView) -> tuple[np.ndarray, np.ndarray]:
    """(steps, shares), the last evaluation of each step."""
    looks = {look.step: look.task.validation for look in view.history.evaluations if look.task}
    return np.array([*looks]), np.array([*looks.values()])
