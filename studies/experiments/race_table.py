"""The numbers of a race on the screen: a row for each run, and the points of its curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.parts.registry import parts_of
from engine.training.numerics import perplexity
from engine.training.records import Evaluation, Sample
from runs.estimate import forward_flops, tokens_a_step
from runs.state import ACTIVE, RunView, Status

Along = Literal["steps", "tokens", "seconds", "flops"]
Unit = Literal["nats", "bits"]  # per token; per character


@dataclass(frozen=True)
class Standing:
    """One run of a race: its newest losses (nats per token) and their cost. NaN where not measured.

    `loss` is on the validation split, the whole of it where `complete`; `training_loss` on the training
    split, without dropout. `flops` are those of the training alone, the ledger's: 3 forward passes a token.
    """

    run: str
    name: str
    status: Status
    step: int
    total_steps: int
    loss: float
    training_loss: float
    complete: bool
    bits: float  # per character, of `loss`
    parameters: int
    tokens: int
    flops: int
    seconds: float
    looked: int  # the step of the newest look; 0 before the first step's
    seed: int = 0

    @property
    def ended(self) -> bool:
        return self.status not in ACTIVE

    @property
    def perplexity(self) -> float:
        return perplexity(self.loss)

    @property
    def gap(self) -> float:
        """The validation loss minus the training loss."""
        return self.loss - self.training_loss


def name_of(view: RunView) -> str:
    """Returns a run's name within its race."""
    return view.given or view.name


def standing(view: RunView) -> Standing:
    look = view.history.evaluations[-1] if view.history.evaluations else None
    tokens = view.step * tokens_a_step(view.spec.model, view.spec.train)
    return Standing(
        view.id,
        name_of(view),
        view.status,
        view.step,
        view.total_steps,
        look.validation_loss if look else math.nan,
        look.train_loss if look else math.nan,
        look.complete if look else False,
        math.nan if look is None or look.validation_bits is None else look.validation_bits,
        view.parameters,
        tokens,
        flops_a_token(view) * tokens,
        view.seconds,
        look.step if look else 0,
        view.spec.train.seed,
    )


def standings(views: Sequence[RunView]) -> tuple[Standing, ...]:
    """Returns a row for each run, in the order of the race."""
    return tuple(standing(view) for view in views)


def written(views: Sequence[RunView]) -> list[tuple[str, Sample]]:
    """Returns (name, sample) of each run, all under the same prompt and seed: after the last step at which
    all those wrote that are going on or have finished; of one that ended before, its last.
    """
    whole = [view for view in views if view.active or view.status == "finished"] or views
    steps = [{sample.step for sample in view.history.samples} for view in whole]
    common = max(set.intersection(*steps), default=None) if steps else None
    samples = []
    for view in views:
        some = [s for s in view.history.samples if common is None or s.step <= common]
        samples += [(name_of(view), some[-1])] if some else []
    return samples


def table(views: Sequence[RunView]) -> dict[str, np.ndarray]:
    """Returns all curves as columns, one row per step of a run, for the CSV. NaN where not measured."""
    rows: dict[str, list[np.ndarray]] = {}
    for view in views:
        history = view.history
        looks = {e.step: e for e in history.evaluations}
        steps = np.union1d(history.steps, list(looks)).astype(np.int64)
        at = {int(step): row for step, row in zip(history.steps, history.rows, strict=True)}
        columns = {
            "run": np.array([name_of(view)] * len(steps)),
            "seed": np.full(len(steps), view.spec.train.seed),
            "step": steps,
            "tokens": _along(view, "tokens", steps, steps),
            "flops": _along(view, "flops", steps, steps),
            "seconds": _picked(at, steps, "seconds"),
            "batch_loss": _picked(at, steps, "loss"),
            "train_loss": _measured(looks, steps, "train_loss"),
            "validation_loss": _measured(looks, steps, "validation_loss"),
            "validation_bits_per_character": _measured(looks, steps, "validation_bits"),
        }
        for name, values in columns.items():
            rows.setdefault(name, []).append(values)
    return {name: np.concatenate(parts) for name, parts in rows.items()}


def _picked(at: Mapping[int, np.void], steps: np.ndarray, field: str) -> np.ndarray:
    return np.array([at[int(s)][field] if int(s) in at else math.nan for s in steps], dtype=np.float32)


def _measured(looks: Mapping[int, Evaluation], steps: np.ndarray, field: str) -> np.ndarray:
    """None becomes NaN."""
    return np.array([getattr(looks.get(int(s)), field, None) for s in steps], dtype=np.float64)


def flops_a_token(view: RunView) -> int:
    """Returns the FLOPs of a training for each token that it reads: backward costs twice forward."""
    return 3 * forward_flops(view.spec.model, parts_of(view.spec.parts))


@dataclass(frozen=True)
class RunCurves:
    """A run's curves against one of four axes: the loss of each batch, and the validation loss of each
    evaluation; `at_end` and `end` are those on the whole split, on no line with evaluations on a part.
    """

    name: str
    at: np.ndarray  # (points,)
    losses: np.ndarray  # (points,) of the batches
    looked_at: np.ndarray  # (looks,)
    looked: np.ndarray  # (looks,)
    end_at: np.ndarray  # (ends,) one, and one for each time that it was continued
    end: np.ndarray  # (ends,)

    @property
    def newest(self) -> tuple[float, float] | None:
        """The last validation loss and its axis position, or None; the whole split's before a part's."""
        ends = [
            (float(at[-1]), float(losses[-1]))
            for at, losses in ((self.end_at, self.end), (self.looked_at, self.looked))
            if len(losses)
        ]
        return max(ends, key=lambda end: end[0], default=None)


def run_curves(
    view: RunView, along: Along, unit: Unit = "nats", smooth: int = 1, points: int = 400
) -> RunCurves:
    """Returns a run's curves: batch losses as means over `smooth`, at most `points` of them."""
    history = view.history
    losses = smoothed(history.losses if unit == "nats" else history.bits, smooth)
    some = np.unique(np.linspace(0, len(losses) - 1, min(points, len(losses))).astype(np.int64))
    whole = [e for e in history.evaluations if e.complete]
    quick = [e for e in history.evaluations if not e.complete]
    if not quick:  # where every look is at the whole split, these are one curve
        quick, whole = list(history.evaluations), []
    return RunCurves(
        name_of(view),
        _along(view, along, history.steps[some], history.seconds[some]),
        losses[some],
        *_looks(view, along, quick, unit),
        *_looks(view, along, whole, unit),
    )


def end_of(views: Sequence[RunView], along: Along) -> float:
    """Returns the end of the axis: at the longest budget, so that it holds still while curves grow. Seconds
    of so many steps, or steps in so many seconds, are extrapolated at the pace so far.
    """
    ends = [0.0]
    for view in views:
        if view.step and view.share:
            steps, seconds = view.step / view.share, view.seconds / view.share
        else:
            steps, seconds = 0.0 if view.spec.train.seconds else view.total_steps, view.spec.train.seconds
        ends.append(float(_along(view, along, np.array([steps]), np.array([seconds]))[0]))
    return max(ends)


def left(views: Sequence[RunView]) -> float:
    """Returns the seconds of training left for a race; a run before its first turn counts as average."""
    known = [view.seconds / view.share for view in views if view.step and view.share]
    unborn = sum(view.active and not view.step for view in views)
    average = sum(known) / len(known) if known else 0.0
    return sum(view.seconds_left or 0.0 for view in views) + unborn * average


def smoothed(losses: np.ndarray, over: int) -> np.ndarray:
    """Returns (points,): the mean of up to `over` losses that end with each.

    >>> smoothed(np.array([4.0, 2.0, 3.0, 1.0]), 2).tolist()
    [4.0, 3.0, 2.5, 2.0]
    """
    if over <= 1 or not len(losses):
        return losses
    sums = np.concatenate([[0.0], np.cumsum(losses, dtype=np.float64)])
    ends = np.arange(1, len(losses) + 1)
    starts = np.maximum(0, ends - over)
    return ((sums[ends] - sums[starts]) / (ends - starts)).astype(losses.dtype)


def _looks(
    view: RunView, along: Along, looks: Sequence[Evaluation], unit: Unit
) -> tuple[np.ndarray, np.ndarray]:
    """(where they lie, validation losses)."""
    losses = [e.validation_loss if unit == "nats" else e.validation_bits for e in looks]
    at = _along(view, along, np.array([e.step for e in looks]), np.array([e.seconds for e in looks]))
    return at, np.array(losses, dtype=np.float64)  # None becomes NaN


def _along(view: RunView, along: Along, steps: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Steps, or what they come to: tokens that were read, seconds of training, FLOPs."""
    if along in ("steps", "seconds"):
        return steps.astype(np.float64) if along == "steps" else seconds
    tokens = tokens_a_step(view.spec.model, view.spec.train)
    return steps.astype(np.float64) * (tokens if along == "tokens" else tokens * flops_a_token(view))
