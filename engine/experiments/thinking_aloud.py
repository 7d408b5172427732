"""Does thinking aloud help? The parity of 16 bits, answered at once, after dots, and with the running parity
written out: `python -m engine.experiments races thinking` trains all three with three seeds each and writes
`checkpoints/races/thinking.json`; the page's button starts the same runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.config import ModelConfig, TrainConfig
from engine.data.tasks.parity import PARITIES
from engine.data.tasks.task import Task
from engine.experiments.stored_races import Stored
from engine.service.state import RunSpec, RunView

THINKING = "thinking"
AT_ONCE, DOTS, ALOUD = PARITIES
NAMES = {name: task.title for name, task in PARITIES.items()}
SOLVED, COIN = 0.95, 0.5  # shares of right answers: at least the first counts as solved; a coin's
CLOSE = 0.1  # of a coin's share: 100 problems scatter by 0.05


def recipe(task: Task) -> tuple[ModelConfig, TrainConfig]:
    """Returns the model and training, the same for all three: only the length of a line is the task's."""
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
    return model, train


def thinking_specs() -> tuple[RunSpec, ...]:
    """Returns the three runs of the race."""
    return tuple(RunSpec(*recipe(task), name, name=task.title) for name, task in PARITIES.items())


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The share of held-out problems whose last bit is right, of every seed of one way: `shares` (seed,
    look), 0 to 1, after `steps` (look,).
    """

    task: str
    steps: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)

    @property
    def title(self) -> str:
        return NAMES[self.task]

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
        """True if no seed ends above a coin's share by more than chance."""
        return bool((np.abs(self.shares[:, -1] - COIN) <= CLOSE).all())

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
