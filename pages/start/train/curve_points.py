"""The arrays behind a loss curve, and the table of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from engine.service.history import History
from engine.service.state import Change
from engine.training.records import Evaluation

XAxis = Literal["step", "time"]
Unit = Literal["nats", "bits"]  # nats per token, or bits per character


def _empty() -> np.ndarray:
    return np.zeros(0, dtype=np.float32)


@dataclass(frozen=True)
class Curve:
    """One run's losses, in nats per token or in bits per character. All arrays are one-dimensional; the
    `eval_*` belong to each other, the `whole_*` too, and so does the rest.

    `eval_*` are validation losses of one kind: quick looks at the same part of the split each time. `whole_*`
    are those on the whole split, which a line through the others must not join: on a part that is easier or
    harder, the same model has another loss.
    """

    name: str
    steps: np.ndarray = field(default_factory=_empty)
    seconds: np.ndarray = field(default_factory=_empty)
    losses: np.ndarray = field(default_factory=_empty)
    eval_steps: np.ndarray = field(default_factory=_empty)
    eval_seconds: np.ndarray = field(default_factory=_empty)
    eval_losses: np.ndarray = field(default_factory=_empty)
    whole_steps: np.ndarray = field(default_factory=_empty)
    whole_seconds: np.ndarray = field(default_factory=_empty)
    whole_losses: np.ndarray = field(default_factory=_empty)
    changes: tuple[Change, ...] = ()  # what was done to it by hand

    @property
    def final(self) -> float:
        """The newest validation loss; NaN where there is none."""
        found = self.newest("step")
        return found[1] if found else math.nan

    def newest(self, x: XAxis) -> tuple[float, float] | None:
        """Returns (position, loss) of the last look, of whatever kind. Where a training ends with both, at
        one step, that is the one at the whole split: it comes after the quick one.
        """
        _, at, whole_at = self.along(x)
        looks = [(where, y) for where, y in ((whole_at, self.whole_losses), (at, self.eval_losses)) if len(y)]
        if not looks:
            return None
        where, losses = max(looks, key=lambda look: float(look[0][-1]))  # the first of those that are equal
        return float(where[-1]), float(losses[-1])

    def along(self, x: XAxis) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns (positions of the steps, of the quick looks, of the evaluations on the whole split) on the
        axis asked for.
        """
        if x == "step":
            return self.steps, self.eval_steps, self.whole_steps
        return self.seconds, self.eval_seconds, self.whole_seconds


def curve_table(history: History) -> pd.DataFrame:
    """Returns one row for each kept step and each evaluation, ordered by step: what the CSV holds. Empty
    cells where a quantity was not measured.
    """
    steps = pd.DataFrame(
        {
            "step": np.asarray(history.steps),
            "seconds": history.seconds,
            "tokens": history.tokens,
            "batch_loss": history.losses,
            "batch_bits_per_character": history.bits,
            "grad_norm": history.grad_norms,
            "learning_rate": history.learning_rates,
        }
    )
    looked = pd.DataFrame(
        [
            (e.step, e.train_loss, e.validation_loss, e.train_bits, e.validation_bits, e.complete)
            for e in history.evaluations
        ],
        columns=[
            "step",
            "train_loss",
            "validation_loss",
            "train_bits_per_character",
            "validation_bits_per_character",
            "validation_complete",
        ],
    ).drop_duplicates("step", keep="last")
    return steps.merge(looked, on="step", how="outer").sort_values("step", ignore_index=True)


def curve_of(
    name: str, history: History, points: int = 0, unit: Unit = "nats", changes: tuple[Change, ...] = ()
) -> Curve:
    """Returns the arrays of a run's history that the loss chart draws; at most `points` steps, spread evenly,
    when points > 0.
    """
    quick = [e for e in history.evaluations if not e.complete]
    whole = [e for e in history.evaluations if e.complete]
    if not quick:  # where every look is at the whole split, these are one curve
        quick, whole = whole, []
    some = spread(len(history.steps), points)
    return Curve(
        name,
        history.steps[some],
        history.seconds[some],
        (history.losses if unit == "nats" else history.bits)[some],
        *_looks(quick, unit),
        *_looks(whole, unit),
        changes,
    )


def newest_of_each(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Returns one for each step: a training ends with a quick look and one at the whole split,
    which counts.
    """
    return list({look.step: look for look in evaluations}.values())


def _looks(evaluations: Sequence[Evaluation], unit: Unit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(steps, seconds, validation losses) of evaluations of one kind."""
    losses = [e.validation_loss if unit == "nats" else e.validation_bits for e in evaluations]
    return (
        np.array([e.step for e in evaluations], dtype=np.int64),
        np.array([e.seconds for e in evaluations], dtype=np.float32),
        np.array(losses, dtype=np.float32),  # None becomes NaN
    )


def spread(count: int, points: int) -> np.ndarray:
    """Indices of at most `points` of `count` entries, spread evenly, the first and the last among them; all
    when points is 0.

    >>> spread(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return (
        np.arange(count)
        if not points or count <= points
        else np.linspace(0, count - 1, points).astype(np.int64)
    )
